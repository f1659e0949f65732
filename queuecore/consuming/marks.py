"""What a process was at when it was killed: a mark beside each partition, that outlives its writer.

One mark for each pack is set before handlers get it. Found after a crash, it makes the messages of that pack suspect:
they are handled one by one, with a mark each; so the one that kills its process is found, and given up.

A mark is a few bytes of a mapped file: it costs no system call, and outlives the process, though not the machine's
power. It is of this machine: a partition that moves to another one is not suspect there.
"""

import hashlib
import logging
import mmap
import os
import struct
import threading
import zlib
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

# Who set it (process id, its start in clock ticks), first and last offset, whether that is a single suspect; checksum.
_MARK: Final = struct.Struct("<QQqqB")
_OWNER: Final = struct.Struct("<QQ")
_RANGE: Final = struct.Struct("<qqB")
_CHECKSUM: Final = struct.Struct("<I")
_SIZE: Final = _MARK.size + _CHECKSUM.size
_NOTHING: Final = bytes(_SIZE)


class Mark(NamedTuple):
    """The messages from `first` to `last` were with handlers. `alone`: it was one message, and under suspicion."""

    first: int
    last: int
    alone: bool


class PartitionMark(Protocol):
    """One partition's mark, in the hands of the one that consumes it. For one thread."""

    def left_behind(self) -> Mark | None:
        """What a process that is gone was at, when this one took over."""

    def claim(self) -> bool:
        """Whether a suspect of this partition may be handled now: of all partitions of a process, one at a time, so
        that no other is blamed. Held until `release`."""

    def release(self) -> None: ...

    def set(self, first: int, last: int, *, alone: bool) -> None: ...

    def clear(self) -> None:
        """Nothing is with handlers."""

    def close(self) -> None:
        """The partition is given away, in good order or not: the mark stays as it is."""


class MarkStore(Protocol):
    """Safe from any thread."""

    def open(self, group: str, place: ProviderPartition) -> PartitionMark: ...


class NoMark:
    """Where nothing outlives the process anyway."""

    def left_behind(self) -> Mark | None:
        return None

    def claim(self) -> bool:
        return True

    def release(self) -> None: ...

    def set(self, first: int, last: int, *, alone: bool) -> None: ...

    def clear(self) -> None: ...

    def close(self) -> None: ...


class NoMarks:
    def open(self, group: str, place: ProviderPartition) -> PartitionMark:  # noqa: ARG002
        return NoMark()


class FileMarks:
    """Marks in a folder, which every process that may take over a partition on this machine has to use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        # Held while a suspect is handled.
        self._suspect = threading.Lock()

    def open(self, group: str, place: ProviderPartition) -> PartitionMark:
        name = hashlib.sha256(f"{group}\n{place.topic}\n{place.partition}".encode()).hexdigest()[:32]
        try:
            with self._lock:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _FileMark(self._folder / f"{name}.mark", self._suspect)
        except OSError as error:
            logger.warning("%s has no mark, so that a message that kills its process is not found: %s", place, error)
            return NoMark()


class _FileMark:
    def __init__(self, path: Path, suspect: threading.Lock) -> None:
        self._suspect = suspect
        self._has_claim = False
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < _SIZE:
                # Written, not only made as long: a mapped page without a block on a full disk would end the process.
                os.pwrite(descriptor, _NOTHING, 0)
            self._page = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        self._left_behind = self._read()
        self._owner = _OWNER.pack(os.getpid(), _started_at(os.getpid()) or 0)

    def left_behind(self) -> Mark | None:
        return self._left_behind

    def claim(self) -> bool:
        self._has_claim = self._has_claim or self._suspect.acquire(blocking=False)
        return self._has_claim

    def release(self) -> None:
        if self._has_claim:
            self._has_claim = False
            self._suspect.release()

    def set(self, first: int, last: int, *, alone: bool) -> None:
        mark = self._owner + _RANGE.pack(first, last, alone)
        self._page[:] = mark + _CHECKSUM.pack(zlib.crc32(mark))

    def clear(self) -> None:
        # The mark of a later owner is not this one's to clear.
        if self._page[: _OWNER.size] == self._owner:
            self._page[:] = _NOTHING

    def close(self) -> None:
        self.release()
        self._page.close()

    def _read(self) -> Mark | None:
        """None also where the one who set it still lives: it has not been killed by what it is at."""
        mark, checksum = self._page[: _MARK.size], self._page[_MARK.size :]
        if _CHECKSUM.unpack(checksum)[0] != zlib.crc32(mark):
            return None
        process, started_at, first, last, alone = _MARK.unpack(mark)
        if process == 0 or _started_at(process) == started_at:
            return None
        return Mark(first, last, bool(alone))


def _started_at(process: int) -> int | None:
    """When a process started, in clock ticks since the machine did; None where there is none of that id. Two processes
    that had the same id differ in it."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return _alive_elsewhere(process)
    # The command's name, in parentheses, may hold anything.
    return int(status.rpartition(")")[2].split()[19])


def _alive_elsewhere(process: int) -> int | None:
    """Without /proc: whether there is a process of that id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return 0
    return 0
