"""What has been sent and could not be handed to the library at once."""

import threading
from collections.abc import Callable, Sequence
from typing import Final

from queuecore.errors import QueueError
from queuecore.providers.base import SendCallback, Sending, stopped
from queuecore.providers.kafka.records import Encoded
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition

# Enough to keep the delivery busy while senders are woken, and little beside what the library may hold.
_MOST_BYTES: Final = 4 * 1024 * 1024
_LOOK_AROUND_S: Final = 1.0
# What a message costs beyond its key, headers and data.
_OVERHEAD_BYTES: Final = 128

# Where to, what (or why not), and whom to tell.
Handed = tuple[ProviderPartition, Encoded | QueueError, SendCallback]


class Inbox:
    """Filled from any thread and emptied by one. Among what was sent are marks, to see when all before them is done.

    While nothing is in it, nor under way from here to the library, who sends may pass it by.
    """

    def __init__(self, options: ProducerOptions) -> None:
        self._most = min(_MOST_BYTES, options.buffer_memory)
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._work = threading.Condition(self._lock)
        self._handed: list[Handed | threading.Event] = []
        self._size = 0
        # Whether the delivery waits for something to do, and so everybody has been answered.
        self._is_idle = False
        # Whether what was taken from here is not handed to the library yet.
        self._is_passing = False
        self._has_ended = False
        self.is_closed = False

    def __len__(self) -> int:
        return len(self._handed)

    def pass_by(self, hand_over: Callable[[Sequence[Sending]], int], sends: Sequence[Sending]) -> int:
        """How many of these `hand_over` says it handed to the library itself, from the first on: none where others come
        before them. It is called by one thread at a time, and never while the delivery hands over what it took."""
        with self._lock:
            if self._handed or self._is_passing or self.is_closed:
                return 0
            number = hand_over(sends)
            if number and self._is_idle:
                self._is_idle = False
                self._work.notify()
            return number

    def put(self, handed: Handed, size: int, patience_s: float = 0) -> bool:
        """Whether there was room for it within the time. ProviderUnavailable when the inbox is closed."""
        with self._lock:
            if self._size >= self._most and patience_s > 0:
                self._room.wait_for(lambda: self._size < self._most or self.is_closed, patience_s)
            if self.is_closed:
                raise stopped()
            if self._size >= self._most:
                return False
            self._handed.append(handed)
            self._size += size + _OVERHEAD_BYTES
            if self._is_idle:
                self._work.notify()
            return True

    def put_many(self, handed: Sequence[Handed], size: int) -> bool:
        """Whether there is room for all of them now; none is taken otherwise, or when the inbox is closed."""
        with self._lock:
            if self.is_closed or self._size + size + len(handed) * _OVERHEAD_BYTES > self._most:
                return False
            self._handed.extend(handed)
            self._size += size + len(handed) * _OVERHEAD_BYTES
            if self._is_idle:
                self._work.notify()
            return True

    def mark(self, marker: threading.Event) -> bool:
        """Set the marker when all that came before it has been answered; True when it has been already."""
        with self._lock:
            if self._has_ended or (self._is_idle and not self._handed):
                return True
            self._handed.append(marker)
            self._work.notify()
            return False

    def close(self) -> None:
        """Refuse what comes from now on."""
        with self._lock:
            self.is_closed = True
            self._work.notify_all()
            self._room.notify_all()

    def take(self, is_awaited: Callable[[], bool]) -> list[Handed | threading.Event]:
        """All that is there; where nothing is, and no answer is awaited, as soon as something is sent. Nothing after a
        while, for the library has something to say, too. Whoever takes something says when it is `passed`."""
        with self._lock:
            if not self._handed and not self.is_closed and not is_awaited():
                self._is_idle = True
                self._work.wait(_LOOK_AROUND_S)
                self._is_idle = False
            if not self._handed:
                return []
            taken, self._handed, self._size = self._handed, [], 0
            self._is_passing = True
            self._room.notify_all()
            return taken

    def passed(self) -> None:
        """What was taken is with the library, or answered."""
        self._is_passing = False

    def end(self) -> None:
        """Nobody empties it any longer."""
        with self._lock:
            self.is_closed = self._has_ended = True
            left, self._handed = self._handed, []
            self._room.notify_all()
        for one in left:
            if isinstance(one, threading.Event):
                one.set()
