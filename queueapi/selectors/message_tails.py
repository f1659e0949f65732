"""Following a queue without a group: what comes after one began to look."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from queueapi import runtime
from queueapi.models import Queue
from queueapi.selectors.message_scans import MessageQuery, matches
from queuecore.errors import OffsetOutOfRange
from queuecore.messages import Record
from queuecore.topics import ProviderPartition

_READ_AT_ONCE: Final = 32
_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST_RECORDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class TailOptions:
    """For how long, and how many messages a second at most."""

    seconds: int = 60
    rate: int = 50


@dataclass(frozen=True, slots=True)
class Looked:
    """What is new, oldest first, and how many more came than could be looked at or shown: the newest are."""

    found: list[tuple[int, Record]]
    skipped: int


class MessageTail:
    """Begins at the ends as they are. To be used by one thread, which closes it. UnknownTopic where there is none."""

    def __init__(self, queue: Queue, partitions: Iterable[int], query: MessageQuery) -> None:
        self._query = query
        self._numbers = {queue.partition_info(number).place: number for number in partitions}
        self._admin = runtime.provider().admin()
        self._positions = dict(self._admin.end_offsets(self._numbers))
        self._reader = runtime.provider().reader()

    def look(self, most: int) -> Looked:
        """Bounded work, however much has come."""
        found: list[tuple[int, Record]] = []
        skipped = 0
        for place, end in self._admin.end_offsets(self._numbers).items():
            records, passed = self._read(place, end)
            skipped += passed
            found += [(self._numbers[place], record) for record in records if matches(record, self._query)]
        found.sort(key=lambda one: one[1].timestamp_ms)
        return Looked(found[-most:], skipped + len(found[:-most]))

    def close(self) -> None:
        self._reader.close()

    def _read(self, place: ProviderPartition, end: int) -> tuple[list[Record], int]:
        """What is new in one partition, and how many were passed over."""
        position = self._positions[place]
        begin = max(position, end - _MOST_RECORDS // len(self._numbers))
        found: list[Record] = []
        size, at = 0, begin
        while at < end and size < _MOST_BYTES:
            records = self._records(place, at)
            if (following := self._reader.position(place) if records is not None else end) <= at:
                # A transaction is undecided: what is behind it cannot be seen yet.
                self._positions[place] = at
                return found, begin - position
            found += records or []
            size += sum(record.size for record in records or ())
            at = following
        self._positions[place] = max(at, end)
        return found, begin - position + max(0, end - at)

    def _records(self, place: ProviderPartition, offset: int) -> list[Record] | None:
        """None where retention was faster."""
        try:
            return self._reader.read(place, offset, _READ_AT_ONCE)
        except OffsetOutOfRange:
            return None
