"""What all lists share: filters, tabs by state, sorting, paging. All of it is in the address, so any view is a link."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import django_filters
from django.core.paginator import Paginator
from django.db.models import Count, F, QuerySet, TextChoices
from django.db.models.expressions import OrderBy
from django.http import QueryDict
from django.views.generic import TemplateView

PAGE_SIZES = (25, 50, 100)


@dataclass(frozen=True, slots=True)
class Sort:
    """The column a list is sorted by."""

    column: str
    descending: bool

    @property
    def parameter(self) -> str:
        return f"-{self.column}" if self.descending else self.column


@dataclass(frozen=True, slots=True)
class Tab:
    """One state as a quick filter. An empty value: all of them. Where `is_exact` is False there are more."""

    value: str
    label: str
    number: int
    is_current: bool
    is_exact: bool = True


class ListPage(TemplateView):
    """`columns` maps what `?sort=` may name to model fields; `default_sort` is used otherwise."""

    filter_class: ClassVar[type[django_filters.FilterSet]]
    columns: ClassVar[Mapping[str, str]]
    default_sort: ClassVar[Sort]
    states: ClassVar[type[TextChoices] | None] = None

    def all_rows(self) -> QuerySet[Any]:
        raise NotImplementedError

    def present(self, rows: Iterable[Any]) -> Iterable[Any]:
        """Rows as the template wants them."""
        return rows

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        filters = self.filter_class(self.request.GET, queryset=self.all_rows(), request=self.request)
        page = self.paginator(filters, self._sorted(filters.qs)).get_page(self.request.GET.get("page"))
        page.object_list = cast(Any, list(self.present(page.object_list)))
        return super().get_context_data(
            **kwargs,
            filters=filters,
            is_filtered=self._is_filtered(),
            page=page,
            page_sizes=PAGE_SIZES,
            sort=self.sort(),
            tabs=self.tabs(),
            is_empty=not page.paginator.count and not self.all_rows().exists(),
        )

    def _is_filtered(self) -> bool:
        return any(self.request.GET.get(name) for name in self.filter_class.base_filters)

    def paginator(self, filters: django_filters.FilterSet, rows: QuerySet[Any]) -> "Paginator[Any]":  # noqa: ARG002
        """Pages of the rows. Where counting them takes long, `filters` may tell another way."""
        return Paginator(rows, self.page_size())

    def page_size(self) -> int:
        asked = self.request.GET.get("size", "")
        return int(asked) if asked in {str(size) for size in PAGE_SIZES} else PAGE_SIZES[0]

    def sort(self) -> Sort:
        asked = self.request.GET.get("sort", "")
        column = asked.removeprefix("-")
        return Sort(column, asked.startswith("-")) if column in self.columns else self.default_sort

    def _sorted(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The primary key decides ties: a row is on one page only."""
        sort = self.sort()
        field = F(self.columns[sort.column])
        return rows.order_by(OrderBy(field, descending=sort.descending, nulls_last=True), "-pk")

    def tabs(self) -> list[Tab]:
        """How many rows of each state the other filters leave."""
        if self.states is None:
            return []
        others: QueryDict = self.request.GET.copy()
        current = others.pop("state", [""])[-1]
        rows = self.filter_class(others, queryset=self.all_rows(), request=self.request).qs
        numbers = dict(rows.order_by().values_list("state").annotate(number=Count("pk")))
        return make_tabs(self.states, numbers, current)


def make_tabs(
    states: type[TextChoices], numbers: Mapping[str, int], current: str, *, is_exact: bool = True
) -> list[Tab]:
    """All of them first, then each state."""
    every = Tab("", "All", sum(numbers.values()), not current, is_exact)
    each = (
        Tab(state.value, str(state.label), numbers.get(state.value, 0), current == state.value, is_exact)
        for state in states
    )
    return [every, *each]
