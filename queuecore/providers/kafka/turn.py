"""Whose turn it is, where two threads would else fight for every step of the interpreter."""

import threading
from typing import Final

# A callback may wait for somebody who sends, so nobody gives way for longer.
_PATIENCE_S: Final = 0.01


class Turn:
    """The library lets go of the interpreter after every report it hands over, and a busy sender would take it each
    time. So senders step aside while reports are handed over. A courtesy that saves time: nothing depends on it.
    """

    __slots__ = ("_has_it", "_lock", "is_taken")

    def __init__(self) -> None:
        self.is_taken = False
        self._lock = threading.Lock()
        self._has_it = False

    def take(self) -> None:
        """For one thread alone."""
        self.is_taken = True
        self._has_it = self._has_it or self._lock.acquire(blocking=False)

    def end(self) -> None:
        """By the thread that took it."""
        self.is_taken = False
        if self._has_it:
            self._has_it = False
            self._lock.release()

    def give_way(self) -> None:
        """Wait until it has ended, but not for long."""
        if self._lock.acquire(timeout=_PATIENCE_S):
            self._lock.release()
        self.is_taken = False
