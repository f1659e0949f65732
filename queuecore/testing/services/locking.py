"""A file lock that says who holds it, and that outlives its taker where it should.

`flock` belongs to the open file, not to the process: handed down to a child, the lock holds until
the last of them is gone. A data directory is thus locked for as long as any process may write to it.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from queuecore.testing.services.errors import ServiceFailed

POLL_S = 0.1


class FileLock:
    """An exclusive lock on `path`; not reentrant, for one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    @property
    def fd(self) -> int:
        """The descriptor to hand to a child that shall share the lock."""
        if self._fd is None:
            raise RuntimeError(f"{self.path} is not locked; acquire() it first")
        return self._fd

    def holder_lives(self) -> bool:
        """Whether the process that took the lock last is alive; if not, the lock is free or soon will be."""
        try:
            os.kill(int(self.path.read_text()), 0)
        except PermissionError:
            return True
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return False
        return True

    def acquire(self, timeout_s: float) -> None:
        """Take the lock, waiting for its holder up to `timeout_s`; raises `ServiceFailed` naming the holder."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._wait(fd, time.monotonic() + timeout_s)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Give up this process's share of the lock; does nothing when it has none."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _wait(self, fd: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(fd, 20, 0).decode().strip() or "unknown"
                    raise ServiceFailed(
                        f"{self.path.parent} is in use (locked by process {holder}); "
                        "stop that one, or choose another directory"
                    ) from None
                time.sleep(POLL_S)
            else:
                return


@contextmanager
def locked(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock on `path` within the block."""
    lock = FileLock(path)
    lock.acquire(timeout_s)
    try:
        yield
    finally:
        lock.release()
