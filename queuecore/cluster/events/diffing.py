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


def diff_for_all(before: ClusterView, after: ClusterView) -> dict[str, list[Event]]:
    """What each instance of `after` is to hear, as `diff` has it, without looking at every partition for each of them.
    Nothing before the first view: whoever is there has seen more."""
    if after.version <= before.version or not before.version:
        return {}
    earlier, now = _owned_by_each(before), _owned_by_each(after)
    involved = _involved(before, after)
    has_come_or_gone = before.services.keys() != after.services.keys()
    told: dict[str, list[Event]] = {}
    for me in after.services:
        events: list[Event] = []
        if (event := _services_changed(before, after, me)) is not None:
            events.append(event)
        queues = frozenset(key for key, those in involved.items() if those != {me})
        if queues or has_come_or_gone:
            events.append(ClusterTopologyChangeEvent(after.version, queues))
        was, mine = earlier.get(me, {}), now.get(me, {})
        if was != mine:
            events.append(PartitionChangeEvent(after.version, me, mine, frozenset(was.keys() - mine.keys())))
        if events:
            told[me] = events
    return told


def _owned_by_each(view: ClusterView) -> dict[str, dict[str, int]]:
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, ownership in view.owners.items():
        if ownership.owner is not None:
            found[ownership.owner][name] = ownership.epoch
    return dict(found)


def _involved(before: ClusterView, after: ClusterView) -> dict[QueueKey, set[str]]:
    """The queues of which a partition has changed hands, and who had or has those."""
    found: defaultdict[QueueKey, set[str]] = defaultdict(set)
    for name in before.owners.keys() | after.owners.keys():
        was, now = before.owners.get(name), after.owners.get(name)
        hands = {None if one is None else one.owner for one in (was, now)}
        if len(hands) > 1:
            partition = after.partitions.get(name) or before.partitions[name]
            found[_queue_of(partition)] |= {one for one in hands if one is not None}
    return dict(found)


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
