"""The map of who owns which partitions."""

from typing import Any

from django.db.models import QuerySet

from console.filters import QueueFilter
from console.lists import Sort
from console.live_lists import LiveListPage
from console.partition_maps import draw_map
from queueapi.models import Queue
from queueapi.selectors.partition_map import partition_map


class PartitionMapPage(LiveListPage):
    template_name = "partitions/map.html"
    part_name = "partitions/map_live.html"
    filter_class = QueueFilter
    default_sort = Sort("name", descending=False)
    columns = {"name": "name", "partitions": "partitions"}

    def all_rows(self) -> QuerySet[Any]:
        return Queue.objects.select_related("tenant")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        seen = partition_map(context["page"].object_list)
        return {**context, "drawn": draw_map(seen), "is_owned": bool(seen.owners)}
