"""The sparse index of a segment.

    index = (offset(8) position(8) latest_before(8) crc(4))*

An entry points at a batch: its first offset, where it begins, and the largest timestamp of anything before it in the
segment. The index of a closed segment ends with an entry for the segment's end. Indexes only save time: an entry is
believed when its checksum, which covers the segment's first offset too, is right and the batch it points at agrees:
a missing, stale or damaged index, or another segment's, costs a scan and nothing else.
"""

import os
import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from queuecore.providers.log.files import index_path, write_fully

INDEX_EVERY_BYTES = 4096
_ENTRY = struct.Struct("<qqq")
_CRC = struct.Struct("<I")
_SIZE = _ENTRY.size + _CRC.size


class IndexEntry(NamedTuple):
    offset: int
    position: int
    latest_before: int


class Index:
    """An index as it was when it was read."""

    def __init__(self, raw: bytes, base: int) -> None:
        self._raw = raw
        self._base = base
        self._numbers = range(len(raw) // _SIZE)

    @classmethod
    def read(cls, directory: Path, base: int) -> "Index":
        try:
            return cls(index_path(directory, base).read_bytes(), base)
        except FileNotFoundError:
            return cls(b"", base)

    @classmethod
    def read_last(cls, directory: Path, base: int) -> IndexEntry | None:
        """The last entry, without reading the others; None where there is none, or it is harmed."""
        try:
            with index_path(directory, base).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size // _SIZE - 1) * _SIZE)
                return cls(file.read(_SIZE), base).last()
        except FileNotFoundError:
            return None

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> IndexEntry:
        return IndexEntry._make(_ENTRY.unpack_from(self._raw, self._numbers[number] * _SIZE))

    def entries(self) -> Iterator[IndexEntry | None]:
        """All of them; None for one that is harmed."""
        return (self._before(number + 1) for number in self._numbers)

    def at_or_before(self, offset: int) -> IndexEntry | None:
        """The last entry whose batch begins at this offset or before it."""
        found = bisect_right(self._numbers, offset, key=lambda number: self[number].offset)
        return self._before(found)

    def older_than(self, timestamp_ms: int) -> IndexEntry | None:
        """The last entry before which everything is older than this."""
        found = bisect_left(self._numbers, timestamp_ms, key=lambda number: self[number].latest_before)
        return self._before(found)

    def last(self) -> IndexEntry | None:
        return self._before(len(self))

    def _before(self, number: int) -> IndexEntry | None:
        """The entry before that one, if there is one and it is unharmed."""
        if not number:
            return None
        start = (number - 1) * _SIZE
        (crc,) = _CRC.unpack_from(self._raw, start + _ENTRY.size)
        return self[number - 1] if _checksum(self._raw[start : start + _ENTRY.size], self._base) == crc else None


class IndexWriter:
    """Appends to a segment's index. For the holder of the append lock."""

    def __init__(self, directory: Path, base: int) -> None:
        mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._base = base
        self._descriptor = os.open(index_path(directory, base), mode, 0o644)

    def add(self, offset: int, position: int, latest_before: int) -> None:
        entry = _ENTRY.pack(offset, position, latest_before)
        # A disk so full that the index cannot grow costs later scans, not this append.
        with suppress(OSError):
            self._cut_half_entry()
            write_fully(self._descriptor, entry, _CRC.pack(_checksum(entry, self._base)))

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)

    def _cut_half_entry(self) -> None:
        """A full disk may have taken half of the last one: what comes behind it would be out of step."""
        if half := os.fstat(self._descriptor).st_size % _SIZE:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - half)

    def close(self) -> None:
        os.close(self._descriptor)


def _checksum(entry: bytes, base: int) -> int:
    return zlib.crc32(entry, base & 0xFFFFFFFF)
