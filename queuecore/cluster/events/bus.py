"""Who wants to hear of events.

Those of one kind are heard in the order of their numbers. One that comes late is left out: it is no longer true.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from queuecore.cluster.events.events import (
    EVENT_TYPES,
    ClusterTopologyChangeEvent,
    Event,
    PartitionChangeEvent,
    ServiceListChangedEvent,
)
from queuecore.cluster.listening import Listeners, Listening

AnEvent = TypeVar("AnEvent", ClusterTopologyChangeEvent, PartitionChangeEvent, ServiceListChangedEvent)


class EventBus:
    """Tells the listeners of one instance. Safe from any thread."""

    def __init__(self, name: str = "cluster events") -> None:
        self._listeners: Listeners[type[Event], Any] = Listeners(name)
        self._lines = {kind: _Line(self._tell) for kind in EVENT_TYPES}

    def listen(self, kind: type[AnEvent], callback: Callable[[AnEvent], None]) -> Listening:
        """Hear events of this kind until the handle is closed. What the callback raises is logged and counted."""
        return self._listeners.add(kind, callback)

    def publish(self, event: Event) -> bool:
        """Tell whoever listens to events of this kind. False for one that is not newer than the last: that is counted,
        and nobody hears it.

        They hear it on this thread before it returns; but where another thread, or a listener, is telling them of an
        earlier event of this kind, they hear this one there, right after that."""
        return self._lines[type(event)].publish(event)

    def last_sequence(self, kind: type[Event]) -> int | None:
        """Of the newest event of this kind; None before the first."""
        return self._lines[kind].last

    def late(self, kind: type[Event]) -> int:
        """How many of this kind were left out."""
        return self._lines[kind].late

    @property
    def failures(self) -> int:
        """How often a listener has raised."""
        return self._listeners.failures

    def _tell(self, event: Event) -> None:
        self._listeners.tell([type(event)], event)


class _Line:
    """Events of one kind, one after the other."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self.last: int | None = None
        self.late = 0
        self._tell = tell
        self._lock = threading.Lock()
        # One thread at a time tells, without the lock: a listener may publish, or wait for another thread that does.
        self._waiting: deque[Event] = deque()
        self._is_telling = False

    def publish(self, event: Event) -> bool:
        with self._lock:
            if self.last is not None and event.sequence <= self.last:
                self.late += 1
                return False
            self.last = event.sequence
            self._waiting.append(event)
            if self._is_telling:
                return True
            self._is_telling = True
        while (waiting := self._next()) is not None:
            try:
                self._tell(waiting)
            except BaseException:
                # A thread that is ended by force must not leave those behind it silent.
                with self._lock:
                    self._is_telling = False
                raise
        return True

    def _next(self) -> Event | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._is_telling = False
            return None
