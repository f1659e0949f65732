"""All errors that letters have, whatever their number: how they come, whom they hit, what was done about them."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

from console.letter_filters import GroupFilter
from console.lists import ListPage, Sort
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.group_rows import GroupRow, group_rows
from queueapi.selectors.letter_groups import groups_for_lists


class GroupList(ListPage):
    template_name = "dead_letters/group_list.html"
    filter_class = GroupFilter
    default_sort = Sort("open", descending=True)
    columns = {
        "error": "exception_class",
        "queue": "queue__name",
        "open": "open_letters",
        "letters": "letters",
        "first": "first_seen",
        "last": "last_seen",
    }

    def all_rows(self) -> QuerySet[Any]:
        return groups_for_lists()

    def present(self, rows: Iterable[Any]) -> Iterable[GroupRow]:
        return group_rows(list(rows))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, freshness=pipeline_freshness())
