"""A partition's page: a few words in a file that every process maps.

    end(8) beginning(8) bell(4) removed(4) synced(8)
    boot(16) base(8) size(8) next_offset(8) latest(8) indexed(8) crc(4)          the writers' notes

Readers look at `end` alone: the offset behind the last readable record, set when the records are where `acks` wants
them. The writers' notes say how far the active segment was whole when its lock was last released. They hold while
their checksum is right and the machine was not restarted since: a power cut may keep the page and lose the records.
"""

import mmap
import os
import struct
import zlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from queuecore.providers.log.bell import Bell

_WORD = struct.Struct("<q")
_FLAG = struct.Struct("<I")
_NOTES = struct.Struct("<16sqqqqq")
_END, _BEGINNING, _BELL, _REMOVED, _SYNCED, _NOTES_AT = 0, 8, 16, 20, 24, 32
_CRC_AT = _NOTES_AT + _NOTES.size
_SIZE = 4096


class Notes(NamedTuple):
    """How far the active segment is whole."""

    base: int
    size: int
    next_offset: int
    # The largest timestamp in the segment, and the position that its index reaches to.
    latest: int
    indexed: int


@lru_cache(maxsize=1)
def boot_id() -> bytes:
    """Changes with every start of the machine; the same for ever where the kernel does not tell."""
    try:
        return UUID(Path("/proc/sys/kernel/random/boot_id").read_text().strip()).bytes
    except (OSError, ValueError):
        return bytes(16)


def map_page(path: Path) -> mmap.mmap:
    """A page that processes share, made where it is missing."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # Reserved, not only sized: on a full disk a store to an unreserved page kills the process.
        os.posix_fallocate(descriptor, 0, _SIZE)
        return mmap.mmap(descriptor, _SIZE)
    finally:
        os.close(descriptor)


class PageView:
    """What a page says. Over bytes that were read once, it never changes."""

    def __init__(self, page: mmap.mmap | bytes) -> None:
        self._words = page

    @classmethod
    def read(cls, directory: Path) -> "PageView":
        """The page as it is now, opened for reading alone. FileNotFoundError where there is none."""
        return cls((directory / "state").read_bytes().ljust(_SIZE, b"\0"))

    @property
    def end(self) -> int:
        offset: int = _WORD.unpack_from(self._words, _END)[0]
        return offset

    @property
    def beginning(self) -> int:
        offset: int = _WORD.unpack_from(self._words, _BEGINNING)[0]
        return offset

    @property
    def is_removed(self) -> bool:
        return bool(_FLAG.unpack_from(self._words, _REMOVED)[0])

    @property
    def synced(self) -> int:
        """Everything below this offset has been on disk."""
        offset: int = _WORD.unpack_from(self._words, _SYNCED)[0]
        return offset

    def notes(self) -> Notes | None:
        """What the last writer noted, or None where that cannot be relied on."""
        raw = self._words[_NOTES_AT : _CRC_AT + _FLAG.size]
        boot, *values = _NOTES.unpack_from(raw)
        (crc,) = _FLAG.unpack_from(raw, _NOTES.size)
        if boot != boot_id() or zlib.crc32(raw[: _NOTES.size]) != crc:
            return None
        return Notes(*values)


class PartitionPage(PageView):
    """The page, mapped: what others write shows at once."""

    def __init__(self, directory: Path) -> None:
        self._page = map_page(directory / "state")
        super().__init__(self._page)
        self.bell = Bell(self._page, _BELL)

    def publish(self, offset: int) -> None:
        """Let readers see everything below this offset. Under the append lock."""
        if offset > self.end:
            _WORD.pack_into(self._page, _END, offset)

    def cut(self, offset: int) -> None:
        """Take back what was published beyond this offset: it is not there. Under the append lock."""
        if offset < self.end:
            _WORD.pack_into(self._page, _END, offset)

    def begin_at(self, offset: int) -> None:
        """Records below this offset count as removed, durably. Under the append lock."""
        _WORD.pack_into(self._page, _BEGINNING, max(self.beginning, offset))
        self._page.flush()

    def mark_removed(self) -> None:
        """Tell everyone who has the partition open that its topic is gone, durably. Under the append lock."""
        _FLAG.pack_into(self._page, _REMOVED, 1)
        self._page.flush()
        self.bell.ring()

    def set_synced(self, offset: int) -> None:
        """Under the sync lock."""
        _WORD.pack_into(self._page, _SYNCED, offset)

    def note(self, notes: Notes) -> None:
        """Under the append lock."""
        raw = _NOTES.pack(boot_id(), *notes)
        self._page[_NOTES_AT : _CRC_AT + _FLAG.size] = raw + _FLAG.pack(zlib.crc32(raw))

    def close(self) -> None:
        self.bell.close()
        self._page.close()
