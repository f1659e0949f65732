"""What compaction keeps: the last record of each key."""

from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from queuecore.messages import Record
from queuecore.providers.log.batch import (
    NO_PRODUCER,
    NO_TRANSACTION,
    BatchHeader,
    decode_records,
    keys_as_bytes,
)
from queuecore.providers.log.closed import ClosedSegment, batches_of
from queuecore.providers.log.reader import Outcome
from queuecore.topics import ProviderPartition

# What key, headers and framing of a record may take, beside its data.
_OVERHEAD_BYTES = 64
_SIZE_BITS = 32


class Load(NamedTuple):
    """So many records, and about so many bytes before compression."""

    records: int = 0
    size: int = 0

    def plus(self, other: "Load") -> "Load":
        return Load(self.records + other.records, self.size + other.size)


class Surveyed(NamedTuple):
    segment: ClosedSegment
    # All there are, whatever became of their transactions.
    all: Load
    # Those without a key, which compaction can only keep.
    keyless: Load
    # Whether batches still say who wrote them, or belong to a transaction.
    has_origins: bool


class Survey:
    """Goes over segments once, oldest first, and knows then which of their records stay.

    Holds every key in memory. Keys are told apart by their bytes, as on Kafka. A tombstone stays until it is older than
    the time given: readers are to see it, and what it removed comes before it, so that both are gone at the end.
    """

    def __init__(
        self, directory: Path, place: ProviderPartition, outcome: Outcome, beginning: int, tombstones_since_ms: int
    ) -> None:
        self._directory = directory
        self._place = place
        self._outcome = outcome
        self._beginning = beginning
        self._tombstones_since_ms = tombstones_since_ms
        # Offset and size of each key's last record, in one number: there may be millions of them.
        self._last: dict[bytes | None, int] = {}
        self._old_tombstones: dict[bytes | None, int] = {}
        self._kept: list[int] = []
        self.segments: list[Surveyed] = []

    def add(self, segment: ClosedSegment) -> bool:
        """Take the segment in. False, and nothing taken, where a transaction in it is not decided yet."""
        batches = list(batches_of(self._directory, segment.base))
        if any(self._is_visible(header) is None for header, *_ in batches):
            return False
        total, keyless = Load(), Load()
        for header, raw, position in batches:
            records = decode_records(header, raw, position, *self._place)
            total = total.plus(_load(records))
            if self._is_visible(header):
                keyless = keyless.plus(_load(self._take(records)))
        has_origins = any(_has_origin(header) for header, *_ in batches)
        self.segments.append(Surveyed(segment, total, keyless, has_origins))
        return True

    def finish(self) -> None:
        """Everything was taken in."""
        for key, last in self._old_tombstones.items():
            if self._last[key] == last:
                del self._last[key]
        self._last.pop(None, None)
        self._kept = sorted(self._last.values())

    def kept_of(self, surveyed: Surveyed) -> Load:
        """What stays of the segment."""
        segment = surveyed.segment
        first = bisect_left(self._kept, segment.base << _SIZE_BITS)
        behind = bisect_left(self._kept, segment.end_offset << _SIZE_BITS)
        size = sum(last & (1 << _SIZE_BITS) - 1 for last in self._kept[first:behind])
        return surveyed.keyless.plus(Load(behind - first, size + (behind - first) * _OVERHEAD_BYTES))

    def keep(self, header: BatchHeader, raw: bytes, position: int) -> list[Record]:
        """The records of this batch that stay."""
        if not self._is_visible(header):
            return []
        records = decode_records(header, raw, position, *self._place)
        keys = keys_as_bytes(records)
        lasts = map(self._last.get, keys)
        return [
            record
            for record, key, packed, last in zip(records, keys, _packed(records), lasts, strict=True)
            if packed == last or (key is None and record.offset >= self._beginning)
        ]

    def _take(self, records: list[Record]) -> list[Record]:
        """Note which are the last of their keys so far; those that have no key."""
        found = list(zip(keys_as_bytes(records), _packed(records), records, strict=True))
        if records and records[0].offset < self._beginning:
            found = [one for one in found if one[2].offset >= self._beginning]
        self._last.update((key, packed) for key, packed, _ in found)
        self._old_tombstones.update((key, packed) for key, packed, record in found if self._is_old_tombstone(record))
        return [record for key, _, record in found if key is None]

    def _is_old_tombstone(self, record: Record) -> bool:
        return not record[2] and record.timestamp_ms < self._tombstones_since_ms and record.is_tombstone

    def _is_visible(self, header: BatchHeader) -> bool | None:
        return header.transaction == NO_TRANSACTION or self._outcome(header.transaction)


def _packed(records: list[Record]) -> list[int]:
    return [record[0] << _SIZE_BITS | len(record[2]) for record in records]


def _load(records: list[Record]) -> Load:
    return Load(len(records), sum(len(record[2]) for record in records) + len(records) * _OVERHEAD_BYTES)


def _has_origin(header: BatchHeader) -> bool:
    return header.producer != NO_PRODUCER or header.transaction != NO_TRANSACTION
