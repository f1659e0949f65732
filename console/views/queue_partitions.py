"""All partitions of a queue, however many: how far behind each is, and who consumes it."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.functional import cached_property

from console.access import seen
from console.lists import Sort
from console.live_lists import LiveListPage
from console.partition_filters import OwnPartitionFilter, QueuePartitionFilter
from queueapi.models import Queue
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.queue_partitions import PartitionRow, partition_rows, samples_of


class QueuePartitionList(LiveListPage):
    template_name = "queues/partitions.html"
    part_name = "queues/partition_rows.html"
    filter_class = QueuePartitionFilter
    default_sort = Sort("number", descending=False)
    columns = {
        "number": "partition",
        "status": "badness",
        "end": "end_offset",
        "committed": "committed_offset",
        "lag": "lag_messages",
        "seconds": "known_lag_s",
        "produced": "produced_per_s",
        "consumed": "consumed_per_s",
        "sampled": "as_of",
    }

    @cached_property
    def queue(self) -> Queue:
        return get_object_or_404(seen(self.request, Queue.objects.select_related("tenant")), pk=self.kwargs["pk"])

    def all_rows(self) -> QuerySet[Any]:
        return samples_of(self.queue)

    def present(self, rows: Iterable[Any]) -> Iterable[PartitionRow]:
        return partition_rows(self.queue, list(rows))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        told = {"queue": self.queue, "tab": "partitions", "freshness": pipeline_freshness()}
        return super().get_context_data(**kwargs, **told)


class OwnPartitionList(QueuePartitionList):
    """Without who consumes them, and how many messages others have sent."""

    template_name = "own/partitions.html"
    part_name = "own/partition_rows.html"
    filter_class = OwnPartitionFilter
    columns = {name: column for name, column in QueuePartitionList.columns.items() if name not in ("end", "committed")}
