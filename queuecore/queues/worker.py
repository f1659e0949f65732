"""The thread that runs a subscription's handler, so that the one that reads can go on being seen by the group."""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable

from queuecore.errors import QueueError
from queuecore.messages import Record
from queuecore.queues.handled import Handled, Tray, is_of
from queuecore.topics import ProviderPartition


class Worker:
    """Works through what it is given, in order, one message at a time. Its methods are safe from any thread.

    Every message is in exactly one state: waiting, current, handled, or gone (withdrawn, or taken by `take_handled`).
    """

    def __init__(self, handle: Callable[[Record], Handled | bool], name: str) -> None:
        self._handle = handle
        # A plain one: it is taken once for every message.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[Record] = deque()
        self._current: Record | None = None
        # Whether what becomes of the current one still matters.
        self._is_current_wanted = True
        # Whether somebody waits for the current one in particular. Otherwise nobody is woken for a single message.
        self._is_current_awaited = False
        self._tray = Tray()
        self._failure: Exception | None = None
        self._is_full = self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_this_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def give(self, records: Iterable[Record]) -> None:
        with self._changed:
            if not self._is_full:
                self._waiting.extend(records)
                self._changed.notify_all()

    def take_no_more(self) -> None:
        """Forget what waits and whatever is given from now on; the message at hand is finished."""
        with self._changed:
            self._is_full = True
            self._waiting.clear()
            self._changed.notify_all()

    def take_handled(self) -> list[Handled]:
        """What was handled since the last time, in order. Raises what stopped the thread, if anything did: then a
        defect of ours, not of a handler's."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            return self._tray.take()

    def wait_idle(self, timeout_s: float) -> bool:
        """True when nothing waits and nothing is under way, within the time."""
        with self._changed:
            return self._changed.wait_for(self._is_idle, timeout_s)

    def wait_done(self, places: Collection[ProviderPartition], timeout_s: float) -> bool:
        """True when nothing of these partitions waits or is under way, within the time."""
        with self._changed:
            self._is_current_awaited = True
            is_done = self._changed.wait_for(lambda: not self._has_any(places), timeout_s)
            self._is_current_awaited = False
            return is_done

    def withdraw(self, places: Collection[ProviderPartition] | None, timeout_s: float) -> bool:
        """Take back what waits of these partitions, or of all, and wait for the one under way. False when that took too
        long: then what becomes of it is ignored."""
        with self._changed:
            self._waiting = deque(one for one in self._waiting if not is_of(one, places))
            self._changed.notify_all()
            self._is_current_awaited = True
            is_done = self._changed.wait_for(lambda: not self._is_under_way(places), timeout_s)
            self._is_current_awaited = False
            if not is_done:
                self._is_current_wanted = False
            return is_done

    def discard(self, places: Collection[ProviderPartition] | None = None) -> None:
        """Forget everything of these partitions, or all: handled or not."""
        with self._changed:
            self._waiting = deque(one for one in self._waiting if not is_of(one, places))
            self._tray.forget(places)
            if self._is_under_way(places):
                self._is_current_wanted = False
            self._changed.notify_all()

    def stop(self, timeout_s: float = 0.0) -> tuple[list[Handled], int]:
        """End once nothing waits, and within the time. What was handled and not taken, and how many messages were not
        done by then, the one under way included: what becomes of that one is ignored."""
        with self._changed:
            self._changed.wait_for(self._is_idle, timeout_s)
            unfinished = len(self._waiting) + (self._current is not None and self._is_current_wanted)
            self._is_stopped = True
            self._is_current_wanted = False
            self._waiting.clear()
            self._changed.notify_all()
            return self._tray.take(), unfinished

    def _is_idle(self) -> bool:
        return not self._waiting and self._current is None

    def _has_any(self, places: Collection[ProviderPartition]) -> bool:
        return self._is_under_way(places) or any(is_of(one, places) for one in self._waiting)

    def _is_under_way(self, places: Collection[ProviderPartition] | None) -> bool:
        return self._current is not None and is_of(self._current, places)

    def _run(self) -> None:
        while (record := self._wait_for_next()) is not None:
            try:
                self._work_from(record)
            except BaseException as error:
                self._fail(as_exception(error, self._thread.name))

    def _wait_for_next(self) -> Record | None:
        """None when stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_stopped)
            return None if self._is_stopped else self._begin_next()

    def _begin_next(self) -> Record:
        self._current = self._waiting.popleft()
        self._is_current_wanted = True
        return self._current

    def _work_from(self, record: Record | None) -> None:
        """Handle this one, and what waits behind it."""
        handle, lock = self._handle, self._lock
        while record is not None:
            handled = handle(record)
            with lock:
                if self._waiting and handled is True and self._is_current_wanted and not self._is_current_awaited:
                    # As it is with nearly all of them.
                    self._tray.add_plain(record)
                    record = self._current = self._waiting.popleft()
                else:
                    record = self._finish(record, handled)

    def _finish(self, record: Record, handled: Handled | bool) -> Record | None:
        """Put away the current one, and begin the next if one waits."""
        if handled is False:
            # Nothing that follows it may be done either, whenever it is given: the commit of that would cover this one.
            self._is_full = True
            self._waiting.clear()
        elif self._is_current_wanted:
            if handled is True:
                self._tray.add_plain(record)
            else:
                self._tray.add(handled)
        self._current = self._begin_next() if self._waiting else None
        self._changed.notify_all()
        return self._current

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._failure = error
            self._current = None
            self._is_stopped = True
            self._waiting.clear()
            self._changed.notify_all()


def as_exception(error: BaseException, thread: str) -> Exception:
    """What ended a thread, as something that can be raised in another without ending that one's process."""
    if isinstance(error, Exception):
        return error
    ended = QueueError(f"the thread {thread} was ended by {error!r}; subscribe again")
    ended.__cause__ = error
    return ended
