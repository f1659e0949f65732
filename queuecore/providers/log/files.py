"""Where things are, and the small operations on files.

<root>/
    catalog.sqlite3             topics, groups, offsets, transactions
    catalog.lock, topics.lock   held by the one who opens the catalog, or who creates or deletes topics, right now
    clean.lock                  held by the one who cleans
    bell                        a page that rings with every append, wherever it is
    members/<group>/<member>    held by a living member of a group; its modification time is the last sign of life
    topics/<topic>/<partition>/
        00000000000000000000.log    a segment, named by its first offset
        00000000000000000000.index  where in it which offsets and times are
        state                       the partition's page, mapped by readers and writers alike
        append.lock, sync.lock      held by the one who appends, or who waits for the disk, right now
    topics/~*                   topics that were deleted, on their way out
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from queuecore.topics import ProviderPartition

LOG, INDEX = ".log", ".index"
_SEGMENT_NAME = re.compile(r"[0-9]{20}\.log")
# What is still being made, or about to be removed: never read, and swept away when the log is cleaned.
UNFINISHED = ".new"
# Begins the names of folders that were topics. No topic's name can hold it.
GOING = "~"


def topics_dir(root: Path) -> Path:
    return root / "topics"


def topic_dir(root: Path, topic: str) -> Path:
    return topics_dir(root) / topic


def partition_dir(root: Path, partition: ProviderPartition) -> Path:
    return topic_dir(root, partition.topic) / str(partition.partition)


def segment_path(directory: Path, base_offset: int) -> Path:
    return directory / f"{base_offset:020d}{LOG}"


def index_path(directory: Path, base_offset: int) -> Path:
    return directory / f"{base_offset:020d}{INDEX}"


def segment_bases(directory: Path) -> list[int]:
    """First offsets of the segments there are, ascending. What is not named like one is not looked at."""
    try:
        names = os.listdir(directory)  # noqa: PTH208 names are all that is wanted, of perhaps thousands
    except FileNotFoundError:
        return []
    return sorted(int(name.removesuffix(LOG)) for name in names if _SEGMENT_NAME.fullmatch(name))


def segment_sizes(directory: Path) -> dict[int, int]:
    """By the first offset of each segment there is, its bytes. One that is removed meanwhile may be left out."""
    sizes = {}
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if _SEGMENT_NAME.fullmatch(entry.name):
                with suppress(FileNotFoundError):
                    sizes[int(entry.name.removesuffix(LOG))] = entry.stat().st_size
    return sizes


def write_fully(descriptor: int, *parts: bytes) -> None:
    """All of it, however often the kernel stops half-way."""
    written = os.writev(descriptor, parts)
    if written == sum(map(len, parts)):
        return
    view = memoryview(b"".join(parts))[written:]
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(directory: Path) -> None:
    """Make a new or removed file's name durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
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
    lock = FileLock(path)
    try:
        with lock:
            yield
    finally:
        lock.close()


class FileLock:
    """An exclusive lock between processes, kept open to be taken often. For one thread; a second thread opens one of
    its own. The kernel drops it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __enter__(self) -> Self:
        self.lock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def lock(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_lock(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._descriptor)
