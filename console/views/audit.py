from typing import Any

from django.db.models import QuerySet

from console.filters import AuditFilter
from console.lists import ListPage, Sort
from queueapi.models import AuditEntry


class AuditList(ListPage):
    template_name = "audit/list.html"
    filter_class = AuditFilter
    default_sort = Sort("at", descending=True)
    columns = {"at": "at", "actor": "actor_name", "action": "action", "object": "object_type"}

    def all_rows(self) -> QuerySet[Any]:
        return AuditEntry.objects.select_related("token")
