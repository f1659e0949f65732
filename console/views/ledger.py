"""The ledger: who did what to which letters, and why."""

from typing import Any

from django.db.models import QuerySet

from console.letter_filters import LedgerFilter
from console.lists import ListPage, Sort
from queueapi.models import LedgerEntry


class LedgerList(ListPage):
    template_name = "dead_letters/ledger.html"
    filter_class = LedgerFilter
    default_sort = Sort("at", descending=True)
    columns = {"at": "at", "who": "actor_name", "action": "action", "letters": "count"}

    def all_rows(self) -> QuerySet[Any]:
        return LedgerEntry.objects.select_related("replay__operation", "group__queue__tenant")
