"""What happened between two views of a cluster."""

from collections import defaultdict
from typing import Final

from queuecore.cluster.events.events import (
    ClusterTopologyChangeEvent,
    Event,
    PartitionChangeEvent,
    ServiceListChangedEvent,
)
from queuecore.cluster.services import ClusterPartition
from queuecore.cluster.view import ClusterView
from queuecore.routing import QueueKey

# Before the first view: all that is in that one is new.
NOTHING_SEEN: Final = ClusterView(version=0)


def diff(before: ClusterView, after: ClusterView, me: str) -> list[Event]:
    """What the instance `me` is to hear; nothing where `after` is not newer. Before the first view it knows
    `NOTHING_SEEN`: that view tells it of its own partitions and of the others, not that anything has changed."""
    if after.version <= before.version:
        return []
    made = (
        _services_changed(before, after, me),
        _topology_changed(before, after, me),
        _partitions_changed(before, after, me),
    )
    return [event for event in made if event is not None]


def _services_changed(before: ClusterView, after: ClusterView, me: str) -> Event | None:
    # What an instance says of itself counts as well: it may be of other types since its restart.
    if before.version and before.services == after.services:
        return None
    return ServiceListChangedEvent(after.version, me, tuple(sorted(after.services.keys() - {me})))


def _topology_changed(before: ClusterView, after: ClusterView, me: str) -> Event | None:
    if not before.version:
        return None
    earlier, now = _of_others(before, me), _of_others(after, me)
    queues = frozenset(key for key in earlier.keys() | now.keys() if earlier.get(key) != now.get(key))
    if not queues and before.services.keys() == after.services.keys():
        return None
    return ClusterTopologyChangeEvent(after.version, queues)


def _partitions_changed(before: ClusterView, after: ClusterView, me: str) -> Event | None:
    earlier, now = _owned_by(before, me), _owned_by(after, me)
    if earlier == now:
        return None
    return PartitionChangeEvent(after.version, me, now, frozenset(earlier.keys() - now.keys()))


def _owned_by(view: ClusterView, me: str) -> dict[str, int]:
    return {name: ownership.epoch for name, ownership in view.owners.items() if ownership.owner == me}


def _of_others(view: ClusterView, me: str) -> dict[QueueKey, dict[str, str]]:
    """By queue, the partitions that others have, and who has each."""
    found: defaultdict[QueueKey, dict[str, str]] = defaultdict(dict)
    for name, ownership in view.owners.items():
        if ownership.owner is not None and ownership.owner != me:
            found[_queue_of(view.partitions[name])][name] = ownership.owner
    return dict(found)


def _queue_of(partition: ClusterPartition) -> QueueKey:
    return QueueKey(partition.service_type, partition.queue, partition.tenant)
