"""What changes in a cluster. Every event has the number of the view that it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from queuecore.routing import QueueKey


@dataclass(frozen=True, slots=True)
class ClusterTopologyChangeEvent:
    """Services came or went, or partitions changed hands among others.

    queues  of which others have other partitions than before
    """

    sequence: int
    queues: frozenset[QueueKey] = frozenset()


@dataclass(frozen=True, slots=True)
class PartitionChangeEvent:
    """What one instance consumes is no longer what it was.

    service_id  which instance
    partitions  all that are its own now, by name, each with the epoch since which it is
    removed     those that were its own and are no more
    """

    sequence: int
    service_id: str
    partitions: Mapping[str, int] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServiceListChangedEvent:
    """Who is there.

    current  the instance that is told
    others   the ids of the others, in order
    """

    sequence: int
    current: str
    others: tuple[str, ...] = ()


Event = ClusterTopologyChangeEvent | PartitionChangeEvent | ServiceListChangedEvent
EVENT_TYPES: Final[tuple[type[Event], ...]] = (
    ClusterTopologyChangeEvent,
    PartitionChangeEvent,
    ServiceListChangedEvent,
)
