"""What in-memory providers share: topics, groups, and the one lock that guards them."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ConfigurationError, PartitionFull, UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.memory.group import MemoryGroup
from queuecore.providers.memory.messages import Stored
from queuecore.providers.memory.partition import MemoryPartition
from queuecore.providers.options import check_choices
from queuecore.topics import ProviderPartition, check_topic

WhenFull = Literal["block", "reject"]


class MemoryStorage:
    """Topics, records and groups of one process. Providers that open the same storage see the same.

    Each partition holds up to `capacity` records. When it is full, those are removed that every group concerned has
    committed past; concerned is a group that has members for the partition or has committed there. A partition
    without any keeps what it has. Beyond that, `retention_ms` and `retention_bytes` remove records, and so does
    `delete_records`. A compacted topic keeps the last record of each key, whoever has read it, and `capacity` counts
    its keys.

    What still finds no room waits for it for `max_block_ms` (`block`), and is refused with PartitionFull after that,
    or at once (`reject`).

    Everything but the constructor is for the holder of `lock`.
    """

    def __init__(self, capacity: int = 100_000, when_full: WhenFull = "block", clock: Clock = SYSTEM_CLOCK) -> None:
        if capacity < 1:
            raise ConfigurationError(f"capacity is {capacity}; 1 message per partition is the least")
        self.when_full: WhenFull = when_full
        check_choices(self, when_full=WhenFull)
        self.clock = clock
        self.lock = threading.Lock()
        self.topics: dict[str, TopicSpec] = {}
        self.groups: dict[str, MemoryGroup] = {}
        # The newest producer of each transactional id has the highest number; the others are fenced.
        self.epochs: dict[str, int] = defaultdict(int)
        self._partitions: dict[ProviderPartition, MemoryPartition] = {}
        self._capacity = capacity
        self._room = threading.Condition(self.lock)
        # Told once, when there may be room again.
        self._waiting_for_room: set[Callable[[], None]] = set()

    def partition(self, place: ProviderPartition) -> MemoryPartition:
        """UnknownTopic where there is none."""
        try:
            return self._partitions[place]
        except KeyError:
            raise UnknownTopic(f"there is no {place}; create the topic first", topic=place.topic) from None

    def group(self, name: str) -> MemoryGroup:
        """The group of that name without the members that have been silent for too long."""
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = MemoryGroup(name)
        group.expire_silent(self.clock.monotonic())
        return group

    def partitions_of(self, topic: str) -> list[MemoryPartition]:
        if topic not in self.topics:
            raise UnknownTopic(f"there is no topic {topic}; create it first", topic=topic)
        places = (ProviderPartition(topic, number) for number in range(self.topics[topic].partitions))
        return [self._partitions[place] for place in places]

    def count(self, topic: str) -> int:
        """How many partitions it has: none where there is no such topic."""
        return self.topics[topic].partitions if topic in self.topics else 0

    def put_topic(self, spec: TopicSpec) -> None:
        """Create the topic, or make the existing one as this says."""
        self.topics[check_topic(spec.name)] = spec
        for number in range(spec.partitions):
            place = ProviderPartition(spec.name, number)
            if place in self._partitions:
                self._partitions[place].apply(spec)
            else:
                self._partitions[place] = MemoryPartition(place, spec, self._capacity)
        self._tell_groups({spec.name: spec.partitions})

    def remove_topic(self, name: str) -> None:
        if self.topics.pop(name, None) is not None:
            self._partitions = {place: one for place, one in self._partitions.items() if place.topic != name}
            self._tell_groups({name: 0})

    def space_may_be_free(self) -> None:
        """Have those that wait for room look again."""
        self._room.notify_all()
        waiting, self._waiting_for_room = self._waiting_for_room, set()
        for tell in waiting:
            tell()

    def tell_of_space(self, tell: Callable[[], None]) -> None:
        """Call this once, when there may be room. It must not wait, nor use the lock."""
        self._waiting_for_room.add(tell)

    def make_room(self, place: ProviderPartition, messages: Sequence[Stored]) -> int:
        """How many of these, from the first on, the partition takes after removing what it can."""
        partition = self.partition(place)
        if (fitting := partition.fitting(messages)) < len(messages):
            now_ms = self.clock.now_ms()
            partition.apply_retention(now_ms)
            partition.forget(min(self._needed_from(place).values(), default=0), now_ms)
            fitting = partition.fitting(messages)
        return fitting

    def wait_for_room(self, wanted: Mapping[ProviderPartition, Sequence[Stored]], max_block_ms: int) -> None:
        """Return when each partition takes all of these. PartitionFull when it does not and nobody is to wait, or it
        did not for the whole time. Waiting lets others have the lock."""
        deadline = time.monotonic() + max_block_ms / 1000
        while full := [place for place, messages in wanted.items() if self.make_room(place, messages) < len(messages)]:
            remaining = deadline - time.monotonic()
            if self.when_full == "reject" or len(wanted[full[0]]) > self._capacity or remaining <= 0:
                raise self.full(full[0])
            self._room.wait(remaining)

    def full(self, place: ProviderPartition) -> PartitionFull:
        """The error that says who holds up what."""
        reason = "no group reads it"
        if needed := self._needed_from(place):
            slowest = min(needed, key=lambda name: needed[name])
            reason = f"group {slowest} needs those from {needed[slowest]} on"
        return PartitionFull(
            f"{place} holds its {self._capacity} messages and {reason}; send again when some are done",
            topic=place.topic,
            partition=place.partition,
        )

    def _needed_from(self, place: ProviderPartition) -> Mapping[str, int]:
        """Every group concerned with the first offset it has not committed past."""
        needed = ((name, self.group(name).needs_from(place)) for name in self.groups)
        return {name: offset for name, offset in needed if offset is not None}

    def _tell_groups(self, counts: Mapping[str, int]) -> None:
        for group in self.groups.values():
            group.topics_changed(counts)
        self.space_may_be_free()
