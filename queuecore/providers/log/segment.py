"""Segment files.

segment = magic(8) version(4) zero(4) batch*
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from queuecore.errors import CorruptLog, ForeignFile
from queuecore.providers.log.batch import HEADER_SIZE, BatchHeader, is_whole, parse_header
from queuecore.providers.log.files import UNFINISHED, index_path, segment_path, sync_directory, write_fully
from queuecore.providers.log.index import Index, IndexEntry

_MAGIC = b"SWYARD\x1a\n"
VERSION = 1
_HEAD = struct.Struct("<8sII")
HEAD_SIZE = _HEAD.size


class Segment:
    """One segment file, open. Positions are bytes from the file's beginning."""

    def __init__(self, directory: Path, base: int, *, writable: bool = False) -> None:
        """FileNotFoundError where there is none, ForeignFile where it is not one of this version's."""
        self.path = segment_path(directory, base)
        self.base = base
        self._directory = directory
        mode = os.O_RDWR | os.O_APPEND if writable else os.O_RDONLY
        self.descriptor = os.open(self.path, mode | os.O_CLOEXEC)
        try:
            check_head(self.path, os.pread(self.descriptor, HEAD_SIZE, 0))
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, directory: Path, base: int) -> Self:
        """A new, empty one, whose name a power cut does not undo. It is there whole or not at all."""
        unfinished = Path(f"{segment_path(directory, base)}{UNFINISHED}")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            write_fully(descriptor, head())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with suppress(FileNotFoundError):
            index_path(directory, base).unlink()
        unfinished.rename(segment_path(directory, base))
        sync_directory(directory)
        return cls(directory, base, writable=True)

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def read_all(self) -> bytes:
        """The whole file, head and batches."""
        with os.fdopen(self.descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return file.read()

    def header_at(self, position: int) -> BatchHeader | None:
        return parse_header(os.pread(self.descriptor, HEADER_SIZE, position))

    def whole_header_at(self, position: int) -> BatchHeader | None:
        """The header at this position if its batch is there, unharmed."""
        header = self.header_at(position)
        if header is None or not is_whole(header, os.pread(self.descriptor, header.size, position)):
            return None
        return header

    def headers(self, position: int = HEAD_SIZE) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from here to the first that is not one; bodies are not looked at."""
        while header := self.header_at(position):
            yield position, header
            position += header.size

    def position_of(self, offset: int) -> int:
        """Where to begin reading to find this offset: at a batch that begins there or before."""
        return self._believed(Index.read(self._directory, self.base).at_or_before(offset))

    def position_of_time(self, timestamp_ms: int) -> int:
        """Where to begin reading to find the first record that is not older than this."""
        return self._believed(Index.read(self._directory, self.base).older_than(timestamp_ms))

    def _believed(self, entry: IndexEntry | None) -> int:
        if entry is None:
            return HEAD_SIZE
        if entry.position == self.size:
            return entry.position
        header = self.header_at(entry.position)
        return entry.position if header is not None and header.base_offset == entry.offset else HEAD_SIZE

    def harm(self, position: int, offset: int) -> CorruptLog:
        return CorruptLog(
            f"{self.path}: bytes at position {position} do not match their checksum; offset {offset} cannot be read. "
            "Restore the file from a copy",
            file=str(self.path),
            position=position,
            offset=offset,
        )

    def close(self) -> None:
        os.close(self.descriptor)


def head() -> bytes:
    return _HEAD.pack(_MAGIC, VERSION, 0)


def check_head(path: Path, raw: bytes) -> None:
    """ForeignFile unless the file begins as this version's segments do."""
    if len(raw) < HEAD_SIZE or not raw.startswith(_MAGIC):
        raise ForeignFile(
            f"{path}: the bytes at position 0 are not those of a Switchyard segment; nothing was changed. Move the "
            "file away, or restore it from a copy",
            file=str(path),
            position=0,
        )
    _, version, zero = _HEAD.unpack(raw)
    if version != VERSION or zero:
        raise ForeignFile(
            f"{path}: written in version {version} of the log's format, this is version {VERSION}; nothing was "
            "changed. Use the Switchyard that wrote it, or a newer one",
            file=str(path),
            position=len(_MAGIC),
        )
