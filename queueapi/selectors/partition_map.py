"""Who has how many partitions of which queue. Of few queues at a time, however many there are."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from queueapi.cluster.models import Partition
from queueapi.models import Queue

# Partitions are found by their names, which are known; of more than so many, by their queue.
_NAMED: Final = 5_000


@dataclass(slots=True)
class OwnedCell:
    """Of one queue what one service instance has: `moving` of these are to be another's."""

    partitions: int = 0
    moving: int = 0


@dataclass(frozen=True, slots=True)
class QueueOwners:
    """By service instance; None: nobody has them."""

    queue: Queue
    owners: dict[str | None, OwnedCell] = field(default_factory=dict)

    @property
    def partitions(self) -> int:
        return sum(cell.partitions for cell in self.owners.values())


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """`owners` are those that have any of these queues' partitions, most first; nobody last."""

    queues: list[QueueOwners]
    owners: list[str | None]


def partition_map(queues: Sequence[Queue]) -> PartitionMap:
    """One query, and in the order of the queues."""
    rows = {queue.pk: QueueOwners(queue) for queue in queues}
    of_topic = {name: rows[queue.pk] for queue in queues for name in queue.topic_names()}
    counts: Counter[str | None] = Counter()
    for name, owner, target in _partitions(queues, of_topic):
        if name in of_topic:
            cell = of_topic[name].owners.setdefault(owner, OwnedCell())
            cell.partitions += 1
            cell.moving += owner != target
            counts[owner] += 1
    owners = sorted(counts, key=lambda owner: (owner is None, -counts[owner], owner or ""))
    return PartitionMap(list(rows.values()), owners)


def _partitions(queues: Sequence[Queue], names: Iterable[str]) -> Iterable[tuple[str, str | None, str | None]]:
    rows = Partition.objects.filter(is_removed=False).order_by()
    listed = list(names)
    if len(listed) <= _NAMED:
        rows = rows.filter(name__in=listed)
    else:
        rows = rows.filter(queue__in={queue.name for queue in queues})
    return rows.values_list("name", "owner", "target")
