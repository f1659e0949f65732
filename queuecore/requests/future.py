"""What a caller has until its answer comes: for threads that wait, for callbacks, and to be awaited."""

import asyncio
import logging
import threading
from _thread import LockType
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Final

from queuecore.errors import QueueError, RequestCancelled
from queuecore.messages import Record

if TYPE_CHECKING:
    from queuecore.requests.pending import PendingRequests

logger = logging.getLogger(__name__)

# For the moment in which somebody begins to wait. Completing takes it only where somebody does.
_JOINING: Final = threading.Lock()

Awaited = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]
Callback = Callable[["ResponseFuture"], object]
# Who waits: somebody to be called, a thread at a lock to be released, or a task of an event loop.
Waiting = Callback | LockType | Awaited


class Wakes:
    """Event loops to be woken, each once for all of its requests that ended together. For one thread."""

    def __init__(self) -> None:
        self._waiters: defaultdict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = defaultdict(list)

    def add(self, awaited: Awaited) -> None:
        loop, waiter = awaited
        self._waiters[loop].append(waiter)

    def wake(self) -> None:
        for loop, waiters in self._waiters.items():
            try:
                loop.call_soon_threadsafe(_end, waiters)
            except RuntimeError:
                continue  # closed: nobody awaits anything there any more
        self._waiters.clear()


def _end(waiters: "list[asyncio.Future[None]]") -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


class ResponseFuture:
    """The answer to one request, or why there is none. Its methods are safe from any thread.

    It ends exactly once: whoever takes it out of the pending requests ends it, and nobody else can take it then. A
    standard future has a lock and a condition of its own, which is more than all else that a pending request needs.
    """

    __slots__ = (
        "__weakref__",
        "_outcome",
        "_pending",
        "_then",
        "deadline",
        "request_id",
        "sent_at",
    )

    def __init__(self, pending: "PendingRequests", request_id: bytes, sent_at: float, deadline: float) -> None:
        self.request_id = request_id
        # By the clock's `monotonic`.
        self.sent_at = sent_at
        self.deadline = deadline
        self._pending = pending
        # The answer, or why there is none; None until it ends.
        self._outcome: Record | QueueError | None = None
        # One that waits, or a list of several: most often it is one, and tens of thousands are pending.
        self._then: Waiting | list[Waiting] | None = None

    def done(self) -> bool:
        return self._outcome is not None

    def cancelled(self) -> bool:
        return isinstance(self._outcome, RequestCancelled)

    def cancel(self) -> bool:
        """Wait no longer: it ends with RequestCancelled, and makes room for another. What was sent is sent; its answer
        will count as late. False where it has ended already."""
        if self._pending.take_cancelled(self.request_id) is None:
            return False
        self.fail(RequestCancelled("the request was cancelled by who sent it; its answer will be ignored"))
        return True

    def result(self, timeout_s: float | None = None) -> Record:
        """The answer. RequestTimeout where none came in time, RequestFailed with what the responder said, or whatever
        else kept it from being sent or answered. TimeoutError where `timeout_s` is over before any of these."""
        outcome = self._wait(timeout_s)
        if isinstance(outcome, QueueError):
            raise outcome
        return outcome

    def exception(self, timeout_s: float | None = None) -> QueueError | None:
        """Why there is no answer; None where there is one. TimeoutError as `result`."""
        outcome = self._wait(timeout_s)
        return outcome if isinstance(outcome, QueueError) else None

    def add_done_callback(self, callback: Callback) -> None:
        """Call it when the request has ended, on the thread that ends it, which ends others' too: it must not wait.
        What it raises is logged. At once where it has ended already."""
        self._join(callback)

    def __await__(self) -> Generator[object, None, Record]:
        """The result. A task that is cancelled meanwhile cancels the request."""
        if self._outcome is None:
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            self._join((loop, waiter))
            try:
                yield from waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.result(0)

    # For those that took it out of the pending requests.

    @staticmethod
    def complete_all(answered: Iterable[tuple["ResponseFuture", Record]], wakes: Wakes) -> None:
        """Those whose answers came together: the lock is taken once for all of them."""
        waited_for: list[tuple[ResponseFuture, Waiting | list[Waiting]]] = []
        with _JOINING:
            for future, answer in answered:
                future._outcome = answer  # noqa: SLF001 - one of its kind, as below
                if (then := future._then) is not None:  # noqa: SLF001
                    future._then = None  # noqa: SLF001
                    waited_for.append((future, then))
        for future, then in waited_for:
            future._tell_each(then, wakes)  # noqa: SLF001

    def complete(self, answer: Record, wakes: Wakes) -> None:
        self.complete_all([(self, answer)], wakes)

    def fail(self, error: QueueError, wakes: Wakes | None = None) -> None:
        self._outcome = error
        if self._then is not None:
            own = wakes or Wakes()
            self._tell(own)
            if wakes is None:
                own.wake()

    def stored(self, error: QueueError | None) -> None:
        """What became of sending it: a request that is nowhere stored will have no answer."""
        if error is not None and self._pending.take_not_stored(self.request_id) is not None:
            self.fail(error)

    def _wait(self, timeout_s: float | None) -> Record | QueueError:
        if self._outcome is not None:
            return self._outcome
        # An event would be several times its size.
        woken = threading.Lock()
        woken.acquire()
        self._join(woken)
        if not woken.acquire(timeout=-1 if timeout_s is None else max(0.0, timeout_s)):
            self._leave(woken)
        if self._outcome is None:
            raise TimeoutError(f"no answer within {timeout_s:g} s; the request still waits for one")
        return self._outcome

    def _join(self, waiting: Waiting) -> None:
        with _JOINING:
            if self._then is None:
                self._then = waiting
            else:
                self._then = [*_all(self._then), waiting]
        # It may have ended before it could see us; of two that see each other, one finds nobody.
        if self._outcome is not None:
            wakes = Wakes()
            self._tell(wakes)
            wakes.wake()

    def _leave(self, waiting: Waiting) -> None:
        with _JOINING:
            self._then = [one for one in _all(self._then) if one is not waiting] or None

    def _tell(self, wakes: Wakes) -> None:
        with _JOINING:
            then, self._then = self._then, None
        if then is not None:
            self._tell_each(then, wakes)

    def _tell_each(self, then: Waiting | list[Waiting], wakes: Wakes) -> None:
        for waiting in then if type(then) is list else (then,):
            if type(waiting) is tuple:
                wakes.add(waiting)
            elif type(waiting) is LockType:
                waiting.release()
            else:
                try:
                    waiting(self)  # type: ignore[operator]
                except Exception:
                    # Others' requests end on this thread, too.
                    logger.exception("a callback of request %s raised", self.request_id.hex())


def _all(then: Waiting | list[Waiting] | None) -> list[Waiting]:
    if then is None:
        return []
    return then if isinstance(then, list) else [then]
