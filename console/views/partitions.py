from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from console.cluster_filters import PartitionFilter
from console.lists import Sort
from console.live_lists import LiveListPage
from queueapi.choices import Tone
from queueapi.cluster.models import Partition
from queueapi.models import Queue
from queueapi.selectors.rebalances import partitions


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """`queue` is None where its row is gone, or not to be found by name."""

    partition: Partition
    queue: Queue | None

    @property
    def tone(self) -> str:
        owner, target = self.partition.owner, self.partition.target
        if owner == target:
            return Tone.GOOD.value if owner else Tone.BAD.value
        return Tone.BUSY.value if owner else Tone.WARN.value

    @property
    def state(self) -> str:
        owner, target = self.partition.owner, self.partition.target
        if owner == target:
            return "Consumed" if owner else "Nobody may have it"
        if owner is None:
            return "To be taken"
        return "Moving" if target else "To be released"


class PartitionList(LiveListPage):
    template_name = "partitions/list.html"
    part_name = "partitions/live.html"
    filter_class = PartitionFilter
    default_sort = Sort("name", descending=False)
    columns = {"name": "name", "queue": "queue", "owner": "owner", "epoch": "epoch", "since": "taken_at"}

    def all_rows(self) -> QuerySet[Any]:
        return partitions()

    def present(self, rows: Iterable[Any]) -> Iterable[PartitionRow]:
        found = list(rows)
        queues = _queues(found)
        return [PartitionRow(row, queues.get((row.tenant, row.queue))) for row in found]


def _queues(rows: Iterable[Partition]) -> dict[tuple[UUID, str], Queue]:
    """By tenant and name: rows of two databases, there is nothing to join."""
    names = {row.queue for row in rows}
    found = Queue.objects.filter(name__in=names).select_related("tenant") if names else []
    return {(queue.tenant_id, queue.name): queue for queue in found}
