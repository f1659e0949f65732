"""Where a partition's files are, and the small operations on them.

<root>/topics/<topic>/<partition>/
    00000000000000000000.log    a segment, named by its first offset
    end                         the published end: 8 bytes, mapped by readers and writers alike
    append.lock                 held by the one writer that appends right now
"""

import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from queuecore.topics import ProviderPartition

_END = struct.Struct("<q")


def partition_dir(root: Path, partition: ProviderPartition) -> Path:
    return root / "topics" / partition.topic / str(partition.partition)


def segment_path(directory: Path, base_offset: int) -> Path:
    return directory / f"{base_offset:020d}.log"


def segment_bases(directory: Path) -> list[int]:
    """First offsets of the segments there are, ascending."""
    return sorted(int(path.stem) for path in directory.glob("*.log"))


def sync_directory(directory: Path) -> None:
    """Make a new or removed file's name durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_durably(directory: Path, *, below: Path) -> None:
    """Make the folder and those above it up to `below`, such that a power cut does not undo it."""
    if directory.is_dir():
        return
    if directory != below:
        make_durably(directory.parent, below=below)
    directory.mkdir(parents=directory == below, exist_ok=True)
    sync_directory(directory.parent)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock that the kernel drops when its holder dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class PublishedEnd:
    """The offset behind the last readable record, shared between processes by one mapped page.

    Only the holder of the append lock writes it, after the records are where `acks` wants them; a reader
    therefore never sees bytes that are still being written.
    """

    def __init__(self, directory: Path) -> None:
        descriptor = os.open(directory / "end", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Reserved, not only sized: on a full disk a store to an unreserved page kills the process.
            os.posix_fallocate(descriptor, 0, _END.size)
            self._page = mmap.mmap(descriptor, _END.size)
        finally:
            os.close(descriptor)

    def get(self) -> int:
        offset: int = _END.unpack_from(self._page)[0]
        return offset

    def set(self, offset: int) -> None:
        _END.pack_into(self._page, 0, offset)

    def close(self) -> None:
        self._page.close()
