"""What a process was at when it was killed: a mark beside each partition, that outlives its writer.

One mark for each pack is set before handlers get it. Found after a crash, it makes the messages of that pack suspect:
they are handled one by one, with a mark each; so the one that kills its process is found, and given up. Other
partitions go on beside it: where one of theirs was under way as well when the process was killed, either may have done
it, and the suspect is handled once more with nothing at all beside it.

A mark is a few bytes of a mapped file: it costs no system call, and outlives the process, though not the machine's
power. It is of this machine: a partition that moves to another one is not suspect there.
"""

import hashlib
import logging
import mmap
import os
import struct
import threading
import time
import zlib
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

# Who set it (process id, its start in clock ticks), first and last offset, whether that is a single suspect and whether
# that had company; checksum.
_MARK: Final = struct.Struct("<QQqqB")
_OWNER: Final = struct.Struct("<QQ")
_RANGE: Final = struct.Struct("<qqB")
_CHECKSUM: Final = struct.Struct("<I")
_SIZE: Final = _MARK.size + _CHECKSUM.size
_NOTHING: Final = bytes(_SIZE)
_ALONE: Final = 1
_ACCOMPANIED: Final = 2

# One that wants to be handled with nothing beside it asks again and again; one that does not has gone.
_ASKS_WITHIN_S: Final = 2.0
# For so long the others wait with what is new. A handler that never ends would have them wait for ever.
_LONGEST_WAIT_S: Final = 60.0


class Mark(NamedTuple):
    """The messages from `first` to `last` were with handlers.

    alone        it was one message, and under suspicion
    accompanied  though messages of other partitions were with handlers of the same process
    """

    first: int
    last: int
    alone: bool
    accompanied: bool = False


class PartitionMark(Protocol):
    """One partition's mark, in the hands of the one that consumes it. For one thread."""

    def left_behind(self) -> Mark | None:
        """What a process that is gone was at, when this one took over."""

    def claim(self, *, exclusive: bool = False) -> bool:
        """Whether a suspect of this partition may be handled now: of all partitions of a process, one at a time, so
        that no other is blamed. Held until `release`. Exclusive: with nothing else of the process beside it, for which
        the others wait; to be asked again until it is so."""

    def release(self) -> None: ...

    def set(self, first: int, last: int, *, alone: bool) -> bool:
        """False, with nothing set: another has to be by itself, and these must wait."""

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

    def claim(self, *, exclusive: bool = False) -> bool:  # noqa: ARG002
        return True

    def release(self) -> None: ...

    def set(self, first: int, last: int, *, alone: bool) -> bool:  # noqa: ARG002
        return True

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
        self._company = _Company()

    def open(self, group: str, place: ProviderPartition) -> PartitionMark:
        name = hashlib.sha256(f"{group}\n{place.topic}\n{place.partition}".encode()).hexdigest()[:32]
        try:
            with self._lock:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _FileMark(self._folder / f"{name}.mark", self._company)
        except OSError as error:
            logger.warning("%s has no mark, so that a message that kills its process is not found: %s", place, error)
            return NoMark()


class _Company:
    """Who is at work beside whom, in one process. Its fields are read and written under its lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # Marks that are set; the suspect's that is handled; whether nothing may be beside that one.
        self.busy: set[_FileMark] = set()
        self.suspect: _FileMark | None = None
        self.is_exclusive = False
        # Who wants to be by itself, since when, and when it asked last.
        self._wanting: _FileMark | None = None
        self._wanted_since = self._asked_at = 0.0

    def claim(self, mark: "_FileMark", exclusive: bool) -> bool:
        if self.suspect is mark:
            return True
        if self.suspect is not None or (exclusive and not self._is_by_itself(mark)):
            return False
        self.suspect, self.is_exclusive, self._wanting = mark, exclusive and not self.busy - {mark}, None
        return True

    def release(self, mark: "_FileMark") -> None:
        if self.suspect is mark:
            self.suspect, self.is_exclusive = None, False

    def leave(self, mark: "_FileMark") -> None:
        self.release(mark)
        self.busy.discard(mark)
        if self._wanting is mark:
            self._wanting = None

    def must_wait(self, mark: "_FileMark") -> bool:
        if self.is_exclusive:
            return self.suspect is not mark
        return self._wanting not in (None, mark) and time.monotonic() - self._asked_at < _ASKS_WITHIN_S

    def _is_by_itself(self, mark: "_FileMark") -> bool:
        """Or has waited for that long enough."""
        if not self.busy - {mark}:
            return True
        now = time.monotonic()
        if self._wanting is not mark:
            if self.must_wait(mark):
                return False
            self._wanting, self._wanted_since = mark, now
        self._asked_at = now
        return now - self._wanted_since >= _LONGEST_WAIT_S


class _FileMark:
    def __init__(self, path: Path, company: _Company) -> None:
        self._company = company
        self._range = (0, 0)
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

    def claim(self, *, exclusive: bool = False) -> bool:
        with self._company.lock:
            return self._company.claim(self, exclusive)

    def release(self) -> None:
        with self._company.lock:
            self._company.release(self)

    def set(self, first: int, last: int, *, alone: bool) -> bool:
        company = self._company
        with company.lock:
            if company.must_wait(self):
                return False
            company.busy.add(self)
            self._range = (first, last)
            if alone:
                self._write(_ALONE if len(company.busy) == 1 else _ALONE | _ACCOMPANIED)
            else:
                self._write(0)
                self._accompany(company.suspect)
        return True

    def clear(self) -> None:
        with self._company.lock:
            self._company.busy.discard(self)
            # The mark of a later owner is not this one's to clear.
            if self._page[: _OWNER.size] == self._owner:
                self._page[:] = _NOTHING

    def close(self) -> None:
        with self._company.lock:
            self._company.leave(self)
            self._page.close()

    def _accompany(self, suspect: "_FileMark | None") -> None:
        if suspect is not None and suspect is not self and suspect in self._company.busy:
            suspect._write(_ALONE | _ACCOMPANIED)  # noqa: SLF001 - one of its kind

    def _write(self, how: int) -> None:
        mark = self._owner + _RANGE.pack(*self._range, how)
        self._page[:] = mark + _CHECKSUM.pack(zlib.crc32(mark))

    def _read(self) -> Mark | None:
        """None also where the one who set it still lives: it has not been killed by what it is at."""
        mark, checksum = self._page[: _MARK.size], self._page[_MARK.size :]
        if _CHECKSUM.unpack(checksum)[0] != zlib.crc32(mark):
            return None
        process, started_at, first, last, how = _MARK.unpack(mark)
        if process == 0 or _started_at(process) == started_at:
            return None
        return Mark(first, last, bool(how & _ALONE), bool(how & _ACCOMPANIED))


def _started_at(process: int) -> int | None:
    """When a process started, in clock ticks since the machine did; None where there is none of that id, or it has
    ended and nobody has taken note. Two processes that had the same id differ in it."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return _alive_elsewhere(process)
    # The command's name, in parentheses, may hold anything.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _alive_elsewhere(process: int) -> int | None:
    """Without /proc: whether there is a process of that id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return 0
    return 0
