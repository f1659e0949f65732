"""How evenly a queue's messages are spread over its partitions."""

from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from queueapi.models import PartitionHeat, QueueSkew

PARTITIONS_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class QueueHeat:
    """`partitions` are those with most messages, most first; `partition_count` is how many there are figures of.
    Without `skew` nothing was counted yet."""

    skew: QueueSkew | None
    partitions: list[PartitionHeat]
    partition_count: int


def queue_heat(skews: QuerySet[QueueSkew], partitions: QuerySet[PartitionHeat]) -> QueueHeat:
    """Of one queue, whose rows these are."""
    warmest = partitions.order_by("-messages", "partition")[:PARTITIONS_SHOWN]
    return QueueHeat(skews.first(), list(warmest), partitions.count())
