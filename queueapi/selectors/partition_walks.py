"""Going through partitions without a group, forwards or backwards, with bounded work."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from queuecore.clock import Clock
from queuecore.errors import OffsetOutOfRange
from queuecore.messages import Record
from queuecore.providers.base import QueueReader
from queuecore.topics import ProviderPartition

# Of all partitions together.
FIRST_LOOK: Final = 32
_READ_BYTES: Final = 1024 * 1024
_READ_RECORDS: Final = 500

StoppedBy = Literal["limit", "records", "bytes", "time"]


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """How much is looked at in one call, matching or not. The first look at each partition is free."""

    records: int = 10_000
    size_bytes: int = 32 * 1024 * 1024
    time_ms: int = 2_000


DEFAULT_LIMITS: Final = ScanLimits()


@dataclass(slots=True)
class Reach:
    """One partition: its offsets, those to be looked at (from `low` to before `high`), and where to go on."""

    partition: int
    place: ProviderPartition
    beginning: int
    end: int
    low: int
    high: int
    next: int | None = None


class Spent(Exception):
    """What one call may look at was looked at."""

    def __init__(self, by: StoppedBy) -> None:
        self.by = by


@dataclass(slots=True)
class Budget:
    limits: ScanLimits
    clock: Clock
    records: int = 0
    size_bytes: int = 0
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self.deadline = self.clock.monotonic() + self.limits.time_ms / 1000

    def check(self) -> None:
        if self.records >= self.limits.records:
            raise Spent("records")
        if self.size_bytes >= self.limits.size_bytes:
            raise Spent("bytes")
        if self.is_late:
            raise Spent("time")

    @property
    def is_late(self) -> bool:
        return self.clock.monotonic() >= self.deadline

    def count(self, records: Sequence[Record]) -> int:
        """How many to read at once after these: about as many bytes each time, and no more than are left."""
        size = sum(record.size for record in records)
        self.records += max(1, len(records))
        self.size_bytes += size
        fitting = _READ_BYTES * max(1, len(records)) // max(1, size)
        return max(1, min(_READ_RECORDS, fitting, self.limits.records - self.records))


def walk_together(
    reader: QueueReader, reaches: Sequence[Reach], budget: Budget, *, newest_first: bool
) -> Iterator[tuple[Reach, Record]]:
    """What the partitions hold between `low` and `high`, in the order of time as far as each keeps it. Spent where the
    budget is. A reach that was gone through has no `next` any more; the others' are their reader's to set."""
    walk = _walk_back if newest_first else _walk_on
    first = min(16, max(1, FIRST_LOOK // max(1, len(reaches))))
    walks = [walk(reader, reach, first, budget) for reach in reaches]
    return heapq.merge(*walks, key=lambda found: found[1].timestamp_ms, reverse=newest_first)


def _walk_on(reader: QueueReader, reach: Reach, size: int, budget: Budget) -> Iterator[tuple[Reach, Record]]:
    """From `low` on, up to `high` or to what cannot be seen yet."""
    position, is_first = reach.low, True
    while position < reach.high:
        if not is_first:
            budget.check()
        is_first = False
        records, following = _read(reader, reach.place, position, size)
        size = budget.count(records)
        yield from ((reach, record) for record in records if record.offset < reach.high)
        if following <= position:
            return  # a transaction is undecided
        position = following
    reach.next = None


def _walk_back(reader: QueueReader, reach: Reach, size: int, budget: Budget) -> Iterator[tuple[Reach, Record]]:
    """From before `high` down to `low`, window by window: a partition can be read forwards alone."""
    top, is_first = reach.high, True
    while top > reach.low:
        if not is_first:
            budget.check()
        is_first = False
        start = max(reach.low, top - size)
        records = _window(reader, reach.place, start, top)
        # Where compaction has left little, ever more is looked at together.
        size = max(budget.count(records), min(2 * size, _READ_RECORDS) if not records else 1)
        yield from ((reach, record) for record in reversed(records))
        top = start
    reach.next = None


def _window(reader: QueueReader, place: ProviderPartition, start: int, top: int) -> list[Record]:
    found: list[Record] = []
    while start < top:
        records, following = _read(reader, place, start, top - start)
        found += [record for record in records if record.offset < top]
        if following <= start:
            break
        start = following
    return found


def _read(reader: QueueReader, place: ProviderPartition, offset: int, size: int) -> tuple[list[Record], int]:
    """Records from there on, and where to go on. What retention has just removed is passed over."""
    try:
        records = reader.read(place, offset, size)
    except OffsetOutOfRange as error:
        return [], max(offset, int(error.fields.get("beginning", offset)))
    return records, reader.position(place)
