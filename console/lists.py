"""What all lists share: filters, tabs by state, sorting, paging. All of it is in the address, so any view is a link."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import django_filters
from django.core.paginator import Paginator
from django.db.models import Count, F, QuerySet, TextChoices
from django.db.models.expressions import OrderBy
from django.http import QueryDict
from django.utils.functional import cached_property
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
    """`columns` maps what `?sort=` may name to model fields; `default_sort` is used otherwise. `ties` decide between
    rows that are alike in that, the last of them between any two: a row is on one page only."""

    filter_class: ClassVar[type[django_filters.FilterSet]]
    columns: ClassVar[Mapping[str, str]]
    default_sort: ClassVar[Sort]
    states: ClassVar[type[TextChoices] | None] = None
    ties: ClassVar[tuple[str, ...]] = ("-pk",)
    # The parameter of the address that tabs choose.
    tabbed_by: ClassVar[str] = "state"
    # Those that filtering leaves as they are.
    kept: ClassVar[tuple[str, ...]] = ("sort", "size")

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
            kept=[(name, value) for name in self.kept if (value := self.request.GET.get(name))],
            page=page,
            page_sizes=PAGE_SIZES,
            sort=self.sort(),
            tabs=self.tabs(),
            tabbed_by=self.tabbed_by,
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
        """Empty ones last. Where there are none nothing is said of them: PostgreSQL would not read the index for it."""
        sort = self.sort()
        column = self.columns[sort.column]
        last = True if _may_be_empty(rows, column) else None
        return rows.order_by(OrderBy(F(column), descending=sort.descending, nulls_last=last), *self.ties)

    def tabs(self) -> list[Tab]:
        """How many rows of each state the other filters leave."""
        if self.states is None:
            return []
        others: QueryDict = self.request.GET.copy()
        current = others.pop(self.tabbed_by, [""])[-1]
        rows = self.filter_class(others, queryset=self.all_rows(), request=self.request).qs
        numbers = dict(rows.order_by().values_list("state").annotate(number=Count("pk")))
        return make_tabs(self.states, numbers, current)


def _may_be_empty(rows: QuerySet[Any], column: str) -> bool:
    """Whether this column of theirs, which may be another table's, can be null."""
    if column in rows.query.annotations:
        return True
    meta = rows.model._meta  # noqa: SLF001 (Django's own word for what is public)
    for name in column.split("__"):
        field = meta.pk if name == "pk" else meta.get_field(name)
        if field is None or getattr(field, "null", True):
            return True
        meta = field.related_model._meta if field.is_relation else meta  # noqa: SLF001
    return False


class BoundedPages(Paginator):  # type: ignore[type-arg]
    """Pages of very many rows: they are counted, and can be turned over, up to so many."""

    most: ClassVar[int] = 10_000

    @cached_property
    def count(self) -> int:
        rows = cast("QuerySet[Any]", self.object_list)
        return rows.order_by()[: self.most].count()


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
