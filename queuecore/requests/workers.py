"""Who runs a responder's handlers: threads, or tasks of one event loop."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from queuecore.consuming.delivering import is_async
from queuecore.requests.answering import Answering
from queuecore.requests.options import ResponseOptions
from queuecore.requests.request import Reply, Request, RequestHandler

logger = logging.getLogger(__name__)

# Handlers that most often take less are done sooner by one thread than by two that want the interpreter. How long they
# take on average would say nothing: one in hundreds is interrupted, and waits for all the other threads.
_QUICK_S: Final = 0.0005
_MOST: Final = 0.5
# While fewer are slow, answers wait for each other.
_RARELY: Final = 0.1
# How long the line may stand still before others are called.
_SLOW_S: Final = 0.1
_SMOOTHING: Final = 0.1
# How long tasks that were cancelled may take to let go.
_STOP_WITHIN_S: Final = 5.0


class Workers(Protocol):
    """For the thread that reads."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Have these handled, the first first."""

    def look(self) -> None:
        """To be called again and again: have as many work as there is work for."""

    def leave_behind(self, request: Request) -> None:
        """It was ended, and its handler goes on: others take its place."""

    @property
    def overruns(self) -> int:
        """How many handlers go on whose requests were ended."""

    def stop(self) -> None:
        """Begin nothing more."""


def workers_for(handler: RequestHandler, answering: Answering, options: ResponseOptions, name: str) -> Workers:
    made = TaskWorkers if is_async(handler) else ThreadWorkers
    return made(handler, answering, options, name)  # type: ignore[arg-type]


class ThreadWorkers:
    """Requests wait in one line, and a thread that is free takes the next: a slow one holds up nobody behind it.
    Threads are started and woken only when those at work are not quick enough, as each costs the others the
    interpreter."""

    def __init__(
        self, handler: Callable[[Request], Reply], answering: Answering, options: ResponseOptions, name: str
    ) -> None:
        self._handler = handler
        self._answering = answering
        self._options = options
        self._name = name
        self._line: deque[Request] = deque()
        self._changed = threading.Condition(threading.Lock())
        # With the lock. Those left behind are none of the alive.
        self._alive = self._idle = self._started = 0
        self._left_behind: set[Request] = set()
        # Whose handlers returned before it was known that they were left behind.
        self._back: set[Request] = set()
        self._is_stopped = False
        # Which part of the last was not quick; written by any worker, and read as a hint.
        self._slow = 0.0
        # The request that was begun last, the one that was when it was looked, and since when it is that.
        self._latest: Request | None = None
        self._seen: Request | None = None
        self._seen_at = 0.0

    @property
    def overruns(self) -> int:
        return len(self._left_behind)

    def submit(self, requests: Sequence[Request]) -> None:
        self._line.extend(requests)
        if self._slow > _MOST:
            self._call(len(requests))
        elif self._idle == self._alive:
            # Who is at work looks at the line again before it rests.
            self._call(1)

    def look(self) -> None:
        if not self._line:
            return
        if self._slow > _MOST or self._stands_still():
            self._call(len(self._line))

    def leave_behind(self, request: Request) -> None:
        with self._changed:
            if request in self._back:
                self._back.remove(request)
                return
            self._left_behind.add(request)
            self._alive -= 1
            overruns = len(self._left_behind)
        if overruns > self._options.max_overruns:
            logger.error(
                "%s: %d handlers overran their time and still run; fewer go on beside them", self._name, overruns
            )

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._line.clear()
            self._changed.notify_all()

    def _call(self, wanted: int) -> None:
        """Have so many more look at the line, as far as there may be."""
        with self._changed:
            awake = min(wanted, self._idle)
            self._changed.notify(awake)
            surplus = max(0, len(self._left_behind) - self._options.max_overruns)
            for _ in range(min(wanted - awake, self._options.concurrency - surplus - self._alive)):
                self._start_one()

    def _start_one(self) -> None:
        self._alive += 1
        self._started += 1
        threading.Thread(target=self._run, name=f"{self._name}-{self._started}", daemon=True).start()

    def _run(self) -> None:
        while self._wait_for_work():
            while (request := self._next()) is not None:
                if not self._handle(request) and self._was_left_behind(request):
                    return
            self._answering.send_ready()

    def _stands_still(self) -> bool:
        """Whether nobody has begun another request for long. How long each is at its own would say nothing here either:
        who waits for the interpreter is no reason to have more that want it."""
        now, latest = time.monotonic(), self._latest
        if latest is not self._seen:
            self._seen, self._seen_at = latest, now
        return now - self._seen_at > _SLOW_S

    def _next(self) -> Request | None:
        try:
            return self._line.popleft()
        except IndexError:
            return None

    def _wait_for_work(self) -> bool:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._line or self._is_stopped)
            self._idle -= 1
            self._alive -= self._is_stopped
            return not self._is_stopped

    def _handle(self, request: Request) -> bool:
        """False where the handler came too late."""
        answering, self._latest = self._answering, request
        if not answering.begin(request):
            return True
        try:
            reply = self._handler(request)
        except BaseException as error:
            # SystemExit of a handler is its own failure: nobody else gives up its thread for it.
            self._note_time(request)
            return answering.fail(request, error)
        self._note_time(request)
        # Behind a slow one, who reads would have to send it.
        return answering.succeed(request, reply, waits=self._slow < _RARELY)

    def _note_time(self, request: Request) -> None:
        is_slow = time.monotonic() - request.started_at > _QUICK_S
        self._slow += (is_slow - self._slow) * _SMOOTHING

    def _was_left_behind(self, request: Request) -> bool:
        """Whether another has its thread's place. If that is to be said yet, it keeps it."""
        with self._changed:
            if request in self._left_behind:
                self._left_behind.remove(request)
                return True
            self._back.add(request)
            return False


class TaskWorkers:
    """Tasks of one event loop, on a thread of its own. What begins with `_in_loop` runs there."""

    def __init__(
        self, handler: Callable[[Request], Awaitable[Reply]], answering: Answering, options: ResponseOptions, name: str
    ) -> None:
        self._handler = handler
        self._answering = answering
        self._concurrency = options.concurrency
        self._line: deque[Request] = deque()
        self._tasks: dict[Request, asyncio.Task[None]] = {}
        self._overruns: set[Request] = set()
        self._is_stopped = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"{name}-tasks", daemon=True)
        self._thread.start()

    @property
    def overruns(self) -> int:
        return len(self._overruns)

    def submit(self, requests: Sequence[Request]) -> None:
        self._line.extend(requests)
        self._call(self._in_loop_fill)

    def look(self) -> None:
        """Tasks that end begin others themselves."""

    def leave_behind(self, request: Request) -> None:
        self._call(self._in_loop_cancel, request)

    def stop(self) -> None:
        self._call(self._in_loop_stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_WITHIN_S)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        # Closed: nothing is handled there any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _in_loop_fill(self) -> None:
        while self._line and len(self._tasks) < self._concurrency:
            request = self._line.popleft()
            if self._answering.begin(request):
                task = self._tasks[request] = self._loop.create_task(self._handle(request))
                task.add_done_callback(partial(self._in_loop_ended, request))

    async def _handle(self, request: Request) -> None:
        try:
            reply = await self._handler(request)
        except Exception as error:
            self._answering.fail(request, error)
        else:
            self._answering.succeed(request, reply)

    def _in_loop_cancel(self, request: Request) -> None:
        if (task := self._tasks.get(request)) is not None:
            self._overruns.add(request)
            task.cancel()

    def _in_loop_ended(self, request: Request, task: "asyncio.Task[None]") -> None:
        del self._tasks[request]
        self._overruns.discard(request)
        if task.cancelled():
            # By stopping: it is left to other responders. Else by its own handler.
            if not self._is_stopped:
                self._answering.fail(request, asyncio.CancelledError("the handler was cancelled"))
        elif (error := task.exception()) is not None:
            self._answering.fail(request, error)
        self._in_loop_fill()
        self._in_loop_end()

    def _in_loop_stop(self) -> None:
        self._is_stopped = True
        self._line.clear()
        for task in self._tasks.values():
            task.cancel()
        self._in_loop_end()

    def _in_loop_end(self) -> None:
        """Once stopped: when all that were cancelled have let go."""
        if self._is_stopped and not self._tasks:
            self._loop.stop()
