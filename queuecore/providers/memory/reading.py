"""The partitions a consumer holds, and how far each is read."""

import logging
import threading
from collections.abc import Iterable, Iterator

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
        # What a commit of everything says: where giving out records, or a seek, got to.
        self.done: dict[ProviderPartition, int] = {}

    @property
    def held(self) -> frozenset[ProviderPartition]:
        return frozenset(self._positions)

    def begin(self, place: ProviderPartition, committed: int | None) -> None:
        """Hold it, and read from there on."""
        self._positions[place] = self._reset(self._storage.partition(place)) if committed is None else committed

    def seek(self, place: ProviderPartition, offset: int) -> None:
        self._positions[place] = self.done[place] = offset

    def pause(self, partitions: Iterable[ProviderPartition]) -> None:
        self._paused.update(partitions)

    def resume(self, partitions: Iterable[ProviderPartition]) -> None:
        self._paused.difference_update(partitions)

    def forget(self, partitions: Iterable[ProviderPartition]) -> None:
        for place in partitions:
            self._positions.pop(place, None)
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
        wake.wait(timeout)
        for partition in partitions:
            partition.waiting.discard(wake)

    def _open(self) -> Iterator[ProviderPartition]:
        return (place for place in self._positions if place not in self._paused)

    def _fetch_from(self, place: ProviderPartition, room: int) -> list[Record]:
        partition, position = self._storage.partition(place), self._positions[place]
        if position == partition.end:
            return []
        if not partition.beginning <= position <= partition.end:
            position = self._positions[place] = self._back_in_range(partition, position)
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
