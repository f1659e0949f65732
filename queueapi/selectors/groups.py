"""Consumer groups as the provider has them: who reads for them, how far they are, and whose queue that is."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.db.models.functions import Lower

from queueapi import runtime
from queueapi.models import Queue
from queueapi.models.queue import PARTITION_FIELDS
from queueapi.plans import all_groups, other_groups
from queuecore.groups.lag import Standing, describe_existing
from queuecore.providers.base import GroupDescription, PartitionDescription
from queuecore.topics import ProviderPartition, ServiceType, group_name

_ONE_PARTITION: Final = re.compile(r"(?P<whole>.+-consumer)-(?P<number>\d{1,5})")

_AFTER_QUEUE: Final = re.compile("-isolated-|-consumer")
_FIELDS: Final = ("id", "name", "tenant_id", "service_type", "topic", *PARTITION_FIELDS)

Held = Mapping[str, frozenset[ProviderPartition]]


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """What a list is narrowed to; what is None or empty narrows nothing. `queue` is an id, or a name in any case."""

    queue: str = ""
    text: str = ""
    active: bool | None = None

    def takes(self, group: GroupDescription, owners: "GroupOwners | None") -> bool:
        """By the owners, which are needed where it is narrowed to a queue."""
        queue = owners.owner(group.name) if owners else None
        named = (queue.name.lower(), str(queue.id)) if queue else ()
        return (
            (not self.queue or self.queue.lower() in named)
            and self.text.lower() in group.name.lower()
            and (self.active is None or self.active == bool(group.members))
        )


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """Of a group in one partition. Where it begins and ends is None when nobody could tell: the topic is gone, or
    nobody leads the partition."""

    place: ProviderPartition
    beginning: int | None
    end: int | None
    committed: int | None
    member: str | None

    @property
    def lag(self) -> int | None:
        if self.beginning is None or self.end is None:
            return None
        return Standing(self.beginning, self.end, self.committed).lag


@dataclass(frozen=True, slots=True)
class GroupFigures:
    name: str
    members: Held
    queue: Queue | None
    partitions: tuple[PartitionFigures, ...]

    @property
    def is_active(self) -> bool:
        return bool(self.members)

    @property
    def lag(self) -> int | None:
        """Of all partitions together whose lag is known; None where none is."""
        known = [one.lag for one in self.partitions if one.lag is not None]
        return sum(known) if known else None


class GroupOwners:
    """Which queue a group reads, by the queues there are: rows with `_FIELDS`, of which few are made into queues."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._by_group = {_whole_group(row): row for row in rows}

    def owner(self, group: str) -> Queue | None:
        if queue := self._queue(group):
            return queue
        told = _ONE_PARTITION.fullmatch(group)
        queue = self._queue(told["whole"]) if told else None
        return queue if told and queue and int(told["number"]) in queue.partition_numbers else None

    def _queue(self, group: str) -> Queue | None:
        row = self._by_group.get(group)
        return None if row is None else Queue(**dict(zip(_FIELDS, row, strict=True)))


def group_owners(groups: Iterable[str] | None = None) -> GroupOwners:
    """By all queues, or by those that groups of these names can be of: of ten thousand queues, a page's are few."""
    rows = Queue.objects.order_by()
    if groups is not None:
        # No queue is called "": asked all the same where there are no others, a page asks as often whatever is on it.
        names = {"", *(name for group in groups for name in _queue_names(group))}
        rows = rows.alias(lower=Lower("name")).filter(lower__in=names)
    return GroupOwners(rows.values_list(*_FIELDS))


def _queue_names(group: str) -> Iterator[str]:
    """What a queue can be called, in lower case, that this is a group of: what stands between the service's type and
    one of these words, which may be in a queue's name as well."""
    for kind in ServiceType:
        rest = group.removeprefix(f"{kind.value.lower()}_")
        if rest != group:
            yield from (rest[: word.start()] for word in _AFTER_QUEUE.finditer(rest))


def _whole_group(row: tuple[Any, ...]) -> str:
    _, name, tenant_id, service_type, *_ = row
    return group_name(ServiceType.of(service_type), name, tenant_id, None)


def list_groups(wanted: GroupFilter, behind: str = "", limit: int | None = None) -> list[GroupDescription]:
    """Of those that the filter leaves, so many that are behind this name, in order, with one question to the provider:
    for so many groups, or where something is looked for, for all."""
    admin = runtime.provider().admin()
    if wanted == GroupFilter():
        return list(admin.groups(behind, limit).values())
    owners = group_owners() if wanted.queue else None
    found = (one for one in admin.groups(behind).values() if wanted.takes(one, owners))
    return list(islice(found, limit))


def groups_with_figures(groups: Sequence[GroupDescription]) -> list[GroupFigures]:
    """How far these are and whose, with two more questions to the provider however many they are. A group's partitions
    are those that it has committed, and those that its members hold."""
    owners = group_owners([group.name for group in groups])
    admin = runtime.provider().admin()
    # Committed before end: a lag is then never too small to be true.
    committed = admin.committed_offsets({group.name: None for group in groups})
    places = {group.name: {*committed[group.name]}.union(*group.members.values()) for group in groups}
    described = describe_existing(admin, {place.topic for found in places.values() for place in found})
    known = {one.place: one for topic in described.values() for one in topic.partitions}
    return [
        _figures(group, owners.owner(group.name), sorted(places[group.name]), committed[group.name], known)
        for group in groups
    ]


def groups_of(queue: Queue) -> list[GroupFigures]:
    """Those that a queue's consumers are in, or were when they were divided the other way; and that they would be in,
    where nobody has read it yet."""
    there, others = runtime.provider().admin().groups(), set(other_groups(queue))
    names = [name for name in all_groups(queue) if name in there or name not in others]
    return groups_with_figures([there.get(name) or GroupDescription(name, {}) for name in names])


def find_group(name: str) -> GroupFigures | None:
    """None where there is no such group; one that a queue's consumers would be in is there before they ever came."""
    found = runtime.provider().admin().groups().get(name)
    [figures] = groups_with_figures([found or GroupDescription(name, {})])
    return figures if found or figures.queue else None


def _figures(
    group: GroupDescription,
    queue: Queue | None,
    places: Iterable[ProviderPartition],
    committed: Mapping[ProviderPartition, int],
    known: Mapping[ProviderPartition, PartitionDescription],
) -> GroupFigures:
    holders = {place: member for member, held in group.members.items() for place in held}

    def figures(place: ProviderPartition) -> PartitionFigures:
        one = known.get(place)
        begins, ends = (one.beginning, one.end) if one else (None, None)
        return PartitionFigures(place, begins, ends, committed.get(place), holders.get(place))

    return GroupFigures(group.name, group.members, queue, tuple(map(figures, places)))
