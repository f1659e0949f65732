"""The partitions a consumer holds, and how far each is read."""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping

from queuecore.groups.offsets import check_end, check_offsets, check_started
from queuecore.messages import Record
from queuecore.providers.memory.partition import MemoryPartition
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)


class Reading:
    """Not safe by itself: everything here happens under the storage's lock."""

    def __init__(self, storage: MemoryStorage, group: str, options: ConsumerOptions) -> None:
        self._storage = storage
        self._group = group
        self._options = options
        # The offset to be given out next of each partition held. The first is read first.
        self._positions: dict[ProviderPartition, int] = {}
        self._paused: set[ProviderPartition] = set()
        # The lowest offset each was read from since it is held: a commit below is of work from before.
        self._starts: dict[ProviderPartition, int] = {}
        # What a commit of everything says: where giving out records got to, since a seek if there was one.
        self.done: dict[ProviderPartition, int] = {}

    @property
    def held(self) -> frozenset[ProviderPartition]:
        return frozenset(self._positions)

    def begin(self, place: ProviderPartition, committed: int | None) -> None:
        """Hold it, and read from there on."""
        position = self._reset(self._storage.partition(place)) if committed is None else committed
        self._positions[place] = self._starts[place] = position

    def seek(self, place: ProviderPartition, offset: int) -> None:
        self._go_to(place, offset)
        self.done.pop(place, None)

    def check_commit(self, offsets: Mapping[ProviderPartition, int]) -> None:
        """OffsetOutOfRange for what the partition does not have, NotOwner for work from before it was held."""
        check_offsets(offsets)
        for place, offset in offsets.items():
            check_end(place, offset, self._storage.partition(place).end)
            check_started(self._group, place, offset, self._starts.get(place, 0))

    def pause(self, partitions: Iterable[ProviderPartition]) -> None:
        self._paused.update(partitions)

    def resume(self, partitions: Iterable[ProviderPartition]) -> None:
        self._paused.difference_update(partitions)

    def forget(self, partitions: Iterable[ProviderPartition]) -> None:
        for place in partitions:
            self._positions.pop(place, None)
            self._starts.pop(place, None)
            self.done.pop(place, None)
            self._paused.discard(place)

    def fetch(self) -> list[Record]:
        """The next records, a pack at most."""
        records: list[Record] = []
        for place in list(self._open()):
            room = self._options.max_poll_records - len(records)
            if not room:
                break
            if more := self._fetch_from(place, room):
                records += more
                # To the back: those that were not reached come first next time.
                del self._positions[place]
                self._positions[place] = self.done[place] = more[-1].offset + 1
        return records

    def wait(self, wake: threading.Condition, timeout: float) -> None:
        """Let others have the lock until something is appended, or `wake` is notified for another reason."""
        partitions = [self._storage.partition(place) for place in self._open()]
        for partition in partitions:
            partition.waiting.add(wake)
        try:
            wake.wait(min(timeout, threading.TIMEOUT_MAX))
        finally:
            for partition in partitions:
                partition.waiting.discard(wake)

    def _go_to(self, place: ProviderPartition, offset: int) -> None:
        self._positions[place] = offset
        self._starts[place] = min(self._starts[place], offset)

    def _open(self) -> Iterator[ProviderPartition]:
        return (place for place in self._positions if place not in self._paused)

    def _fetch_from(self, place: ProviderPartition, room: int) -> list[Record]:
        partition, position = self._storage.partition(place), self._positions[place]
        if position == partition.end:
            return []
        if not partition.beginning <= position <= partition.end:
            position = self._back_in_range(partition, position)
            self._go_to(place, position)
        records = partition.read(position, room, self._options.max_partition_fetch_bytes)
        if not records:  # compaction left nothing up to the end
            self._positions[place] = partition.end
        return records

    def _back_in_range(self, partition: MemoryPartition, position: int) -> int:
        there = partition.beginning if position < partition.beginning else self._reset(partition)
        logger.warning(
            "%s has offsets %d to %d; group %s was at %d and goes on from %d",
            *(partition.place, partition.beginning, partition.end, self._group, position, there),
        )
        return there

    def _reset(self, partition: MemoryPartition) -> int:
        return partition.beginning if self._options.auto_offset_reset == "earliest" else partition.end
