"""A stretch of a partition's messages, kept as columns."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from types import MappingProxyType
from typing import NamedTuple

from queuecore.messages import Headers, Key, Record
from queuecore.providers.memory.messages import Stored
from queuecore.topics import ProviderPartition

SEGMENT_RECORDS = 1_024


class Entry(NamedTuple):
    """One message as it is stored."""

    offset: int
    timestamp_ms: int
    size: int
    message: Stored


class Segment:
    """Grows at its end, and never changes otherwise: the records made of it ask it for their keys and headers.

    Python's garbage collector goes through every list there is, whatever is in it; of a full segment it has nothing to
    go through. Numbers are in arrays, which it does not know, and the others in tuples: those of plain values, and of
    dictionaries of these, it leaves out once it has seen them. So a full partition does not slow it down.
    """

    __slots__ = ("_data", "_headers", "_keys", "_sizes", "_timestamps_ms", "offsets", "partition", "topic")

    def __init__(self, place: ProviderPartition) -> None:
        self.topic, self.partition = place
        self.offsets = array("q")
        self._timestamps_ms = array("q")
        self._sizes = array("q")
        self._keys: list[Key] = []
        self._data: list[bytes] = []
        self._headers: list[dict[str, bytes]] = []

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def room(self) -> int:
        return SEGMENT_RECORDS - len(self.offsets)

    def append(self, entry: Entry) -> None:
        self.extend([entry.offset], entry.timestamp_ms, [entry.size], [entry.message])

    def extend(
        self, offsets: Sequence[int], timestamp_ms: int, sizes: Iterable[int], messages: Sequence[Stored]
    ) -> None:
        """Add these, one at least; there is room."""
        keys, data, headers = zip(*messages, strict=True)
        self._keys += keys
        self._data += data
        self._headers += headers
        self._timestamps_ms.extend(repeat(timestamp_ms, len(offsets)))
        self._sizes.extend(sizes)
        self.offsets.extend(offsets)
        if not self.room:
            self._seal()

    def _seal(self) -> None:
        """Nothing is added any more."""
        self._keys = tuple(self._keys)  # type: ignore[assignment]
        self._data = tuple(self._data)  # type: ignore[assignment]
        self._headers = tuple(self._headers)  # type: ignore[assignment]

    def key(self, index: int) -> Key:
        return self._keys[index]

    def headers(self, index: int) -> Headers:
        return MappingProxyType(self._headers[index])

    def index(self, offset: int) -> int:
        """Where the first record is that is not below this offset."""
        return bisect_left(self.offsets, offset)

    def records(self, start: int, stop: int) -> list[Record]:
        """Those with these indexes."""
        rows = zip(
            self.offsets[start:stop],
            self._timestamps_ms[start:stop],
            self._data[start:stop],
            range(start, stop),
            repeat(self),
            strict=False,
        )
        return list(map(tuple.__new__, repeat(Record), rows))

    def size(self, start: int, stop: int) -> int:
        """Bytes of those with these indexes."""
        return sum(self._sizes[start:stop])

    def fitting(self, start: int, stop: int, max_bytes: int) -> int:
        """Up to which index they have no more bytes together."""
        return start + bisect_right(list(accumulate(self._sizes[start:stop])), max_bytes)

    def first_at(self, time_ms: int, start: int) -> int | None:
        """The offset of the first record from this index on that is not older."""
        rows = zip(self.offsets[start:], self._timestamps_ms[start:], strict=True)
        return next((offset for offset, timestamp_ms in rows if timestamp_ms >= time_ms), None)

    def entries(self, start: int) -> Iterator[Entry]:
        """Everything from this index on."""
        for index in range(start, len(self.offsets)):
            message = (self._keys[index], self._data[index], self._headers[index])
            yield Entry(self.offsets[index], self._timestamps_ms[index], self._sizes[index], message)
