"""Waking readers in other processes: a futex on a word of a mapped page.

Whoever appends counts the word up and wakes those who wait for it to change; a reader sleeps in the kernel until then.
Where the kernel has no futex (anything but Linux), a reader looks at the word every few milliseconds instead.
"""

import ctypes
import errno
import mmap
import os
import platform
import sys
import time

_SYS_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}.get(platform.machine())
_HAS_FUTEX = sys.platform == "linux" and _SYS_FUTEX is not None
_WAIT, _WAKE = 0, 1
_EVERYBODY = 2**31 - 1
_LOOK_AGAIN_S = 0.005

_libc = ctypes.CDLL(None, use_errno=True) if _HAS_FUTEX else None


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Bell:
    """One word of a mapped page. Rung under a lock of the caller's; waited for by anyone."""

    def __init__(self, page: mmap.mmap, position: int) -> None:
        self._word = ctypes.c_uint32.from_buffer(page, position)

    def heard(self) -> int:
        """What the word says now; pass it to `wait` after looking for what one waits for."""
        return self._word.value

    def ring(self) -> None:
        self._word.value = (self._word.value + 1) & 0xFFFFFFFF
        if _libc is not None:
            _libc.syscall(_SYS_FUTEX, ctypes.byref(self._word), _WAKE, _EVERYBODY, None, None, 0)

    def wait(self, heard: int, timeout_s: float) -> None:
        """Until the bell rang since it was `heard`, or the time is over. May return early."""
        if timeout_s <= 0:
            return
        if _libc is None:
            self._look(heard, time.monotonic() + timeout_s)
            return
        limit = _Timespec(int(timeout_s), int(timeout_s % 1 * 1_000_000_000))
        failed = _libc.syscall(
            _SYS_FUTEX, ctypes.byref(self._word), _WAIT, ctypes.c_uint32(heard), ctypes.byref(limit), None, 0
        )
        if failed and (code := ctypes.get_errno()) not in (errno.EAGAIN, errno.ETIMEDOUT, errno.EINTR):
            raise OSError(code, os.strerror(code))

    def _look(self, heard: int, deadline: float) -> None:
        while self._word.value == heard and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)

    def close(self) -> None:
        """Let go of the page, which cannot be closed before."""
        del self._word
