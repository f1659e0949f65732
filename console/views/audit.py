from collections.abc import Iterable
from typing import Any

import django_filters
from django.core.paginator import Paginator
from django.db.models import QuerySet

from console.access import seen
from console.audit_changes import AuditedChange, audited
from console.audit_filters import SEARCHED, AuditFilter
from console.lists import BoundedPages, ListPage, Sort
from queueapi.models import AuditEntry


class AuditList(ListPage):
    template_name = "audit/list.html"
    filter_class = AuditFilter
    default_sort = Sort("at", descending=True)
    columns = {"at": "at", "actor": "actor_name", "action": "action", "object": "object_type"}

    def all_rows(self) -> QuerySet[Any]:
        return seen(self.request, AuditEntry.objects.select_related("token"))

    def paginator(self, _filters: django_filters.FilterSet, rows: QuerySet[Any]) -> "Paginator[Any]":
        return BoundedPages(rows, self.page_size())

    def _sorted(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """What is alike goes by time in the same direction: as indexes have it, where a million would be sorted."""
        sort = self.sort()
        fields = dict.fromkeys((self.columns[sort.column], "at", "pk"))
        return rows.order_by(*(f"-{field}" if sort.descending else field for field in fields))

    def present(self, rows: Iterable[Any]) -> Iterable[AuditedChange]:
        return audited(self.request, rows)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        is_cut = context["page"].paginator.count >= BoundedPages.most
        searched = SEARCHED if context["filters"].is_search_bounded else None
        return {**context, "is_cut": is_cut, "searched": searched}
