"""One partition in memory: its records in order, and how old ones go."""

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from queuecore.errors import InvalidMessage, OffsetOutOfRange
from queuecore.messages import TOMBSTONE, Key, Record
from queuecore.providers.base import DAY_MS, FOR_EVER, TopicSpec
from queuecore.providers.memory.messages import Stored
from queuecore.providers.memory.segment import SEGMENT_RECORDS, Entry, Segment
from queuecore.topics import ProviderPartition

# How long a compacted topic still shows that a key was deleted, as on Kafka.
TOMBSTONE_RETENTION_MS = DAY_MS


class MemoryPartition:
    """Not safe by itself: everything here happens under the storage's lock."""

    def __init__(self, place: ProviderPartition, spec: TopicSpec, capacity: int) -> None:
        self.place = place
        self.beginning = 0
        self.end = 0
        self.size_bytes = 0
        # Consumers that found nothing more to read; told once, by the next append.
        self.waiting: set[threading.Condition] = set()
        self._capacity = capacity
        # At least one. Of the first, what is below `beginning` does not count any more.
        self._segments = [Segment(place)]
        self._count = 0
        # How many records the last compaction left.
        self._clean = 0
        # Every key there is a record of; kept where the topic is compacted.
        self._keys: set[Key] = set()
        self.apply(spec)

    def apply(self, spec: TopicSpec) -> None:
        """Go by this from now on."""
        self.is_compacted = spec.is_compacted
        self._retention_ms = spec.retention_ms if spec.is_deleted_from else FOR_EVER
        self._retention_bytes = spec.retention_bytes if spec.is_deleted_from else FOR_EVER
        self._find_keys()

    def fitting(self, messages: Sequence[Stored]) -> int:
        """How many of these, from the first on, there is room for. Where the topic is compacted, keys count and not
        records: one that is there already can always have another record, as the older one will go."""
        if not self.is_compacted:
            return min(max(0, self._capacity - self._count), len(messages))
        keys: set[Key] = set()
        for number, (key, _, _) in enumerate(messages):
            if key not in self._keys:
                keys.add(key)
            if len(self._keys) + len(keys) > self._capacity:
                return number
        return len(messages)

    def check(self, message: Stored) -> None:
        """InvalidMessage for one that this topic cannot keep."""
        if self.is_compacted and message[0] is None:
            raise InvalidMessage(f"topic {self.place.topic} keeps the last message of each key; send it with a key")

    def append(self, messages: Sequence[Stored], sizes: Sequence[int], now_ms: int) -> int:
        """Store checked messages, for which there is room; the offset of the first."""
        base = self.end
        done = 0
        while done < len(messages):
            segment = self._open_segment(now_ms)
            count = min(segment.room, len(messages) - done)
            taken = sizes[done : done + count]
            segment.extend(range(self.end, self.end + count), now_ms, taken, messages[done : done + count])
            done += count
            self.end += count
            self._count += count
            self.size_bytes += sum(taken)
        if self.is_compacted:
            self._keys.update(key for key, _, _ in messages)
        for consumer in self.waiting:
            consumer.notify()
        self.waiting.clear()
        return base

    def read(self, offset: int, max_records: int, max_bytes: int | None = None) -> list[Record]:
        """From `offset` on; the first record however large. OffsetOutOfRange below the beginning."""
        if offset < self.beginning:
            raise OffsetOutOfRange(
                f"{self.place} begins at {self.beginning}; {offset} is not stored any more, go on from there",
                beginning=self.beginning,
                end=self.end,
            )
        if max_bytes is not None and self.size_bytes <= max_bytes:
            max_bytes = None
        records: list[Record] = []
        for segment in self._segments[self._segment_of(offset) :]:
            start = segment.index(offset)
            stop = min(start + max_records - len(records), len(segment))
            if max_bytes is not None:
                full, stop = stop, segment.fitting(start, stop, max_bytes)
                max_bytes -= segment.size(start, stop)
                if stop < full:
                    return [*records, *segment.records(start, stop)] or segment.records(start, start + 1)
            records += segment.records(start, stop)
            if len(records) >= max_records:
                break
        return records

    def first_at(self, time_ms: int) -> int:
        """The offset of the first record that is not older; the end where there is none."""
        found = (segment.first_at(time_ms, segment.index(self.beginning)) for segment in self._segments)
        return next((offset for offset in found if offset is not None), self.end)

    def trim(self, offset: int) -> None:
        """Remove what is below this offset."""
        offset = min(offset, self.end)
        if offset <= self.beginning:
            return
        last = self._segment_of(offset)
        for segment in self._segments[: last + 1]:
            start, stop = segment.index(self.beginning), segment.index(offset)
            self._count -= stop - start
            self.size_bytes -= segment.size(start, stop)
        del self._segments[:last]
        self.beginning = offset
        self._clean = min(self._clean, self._count)
        self._find_keys()

    def apply_retention(self, now_ms: int) -> None:
        """Remove what is too old or too much, where the topic says so."""
        oldest_ms = 0 if self._retention_ms == FOR_EVER else now_ms - self._retention_ms
        excess = 0 if self._retention_bytes == FOR_EVER else self.size_bytes - self._retention_bytes
        offset = self.beginning
        for entry in self._entries():
            if entry.timestamp_ms >= oldest_ms and (excess <= 0 or entry.size > excess):
                break
            excess -= entry.size
            offset = entry.offset + 1
        self.trim(offset)

    def forget(self, done: int, now_ms: int) -> None:
        """Make what room can be made, where everything below `done` was read by all: of a compacted topic, only
        what a later record of the same key replaces, and tombstones."""
        if self.is_compacted:
            self._compact(now_ms, done)
        else:
            self.trim(done)

    def _compact(self, now_ms: int, done: int) -> None:
        """Keep the last record of each key. A tombstone goes when it is old, or below `done`."""
        last = {entry.message[0]: entry.offset for entry in self._entries()}
        old_ms = now_ms - TOMBSTONE_RETENTION_MS
        kept = [entry for entry in self._entries() if last[entry.message[0]] == entry.offset]
        kept = [
            entry
            for entry in kept
            if not _is_tombstone(entry.message) or (entry.timestamp_ms >= old_ms and entry.offset >= done)
        ]
        self._segments = [Segment(self.place)]
        for entry in kept:
            if not self._segments[-1].room:
                self._segments.append(Segment(self.place))
            self._segments[-1].append(entry)
        self._clean = self._count = len(kept)
        self.size_bytes = sum(entry.size for entry in kept)
        self._find_keys()

    def _open_segment(self, now_ms: int) -> Segment:
        """The one to append to. Before a new one is begun, there is a moment to look after the old ones."""
        if not self._segments[-1].room:
            self.apply_retention(now_ms)
            if self.is_compacted and self._count >= max(2 * self._clean, SEGMENT_RECORDS):
                self._compact(now_ms, done=0)
        if not self._segments[-1].room:
            self._segments.append(Segment(self.place))
        return self._segments[-1]

    def _find_keys(self) -> None:
        self._keys = {entry.message[0] for entry in self._entries()} if self.is_compacted else set()

    def _segment_of(self, offset: int) -> int:
        """The number of the segment in which a record of this offset would be."""
        return max(0, bisect_right(self._segments, offset, key=_first_offset) - 1)

    def _entries(self) -> Iterator[Entry]:
        """Everything that is stored, in order."""
        for segment in self._segments:
            yield from segment.entries(segment.index(self.beginning))


def _first_offset(segment: Segment) -> int:
    # An empty segment is the only one.
    return segment.offsets[0] if len(segment) else 0


def _is_tombstone(message: Stored) -> bool:
    _, data, headers = message
    return not data and TOMBSTONE in headers
