"""Handlers that are to be awaited: tasks of one event loop, on a thread of its own."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from queuecore.consuming.attempt import Attempt, Run
from queuecore.consuming.delivering import Deliverer


class AsyncPool:
    """A Pool of tasks. One whose time is up is cancelled, where handlers are told; it is over when it
    has let go.

    What begins with `_in_loop` runs on the loop's thread, and alone touches the tasks.
    """

    def __init__(
        self, name: str, deliverer: Deliverer, concurrency: int, max_overruns: int, on_change: Callable[[], None]
    ) -> None:
        self._name = name
        self._deliverer = deliverer
        self._concurrency = concurrency
        self._max_overruns = max_overruns
        self._on_change = on_change
        self._lock = threading.Lock()
        # Those that found no free place.
        self._waiting: deque[Attempt] = deque()
        self._tasks: dict[Run, asyncio.Task[None]] = {}
        self._active = self._overruns = 0
        # Made when there is work: what never starts has nothing to close.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self.error: BaseException | None = None

    @property
    def overruns(self) -> int:
        return self._overruns

    @property
    def is_stuck(self) -> bool:
        return self._capacity() == 0

    @property
    def is_this_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def submit(self, attempt: Attempt) -> None:
        if self._loop is None:
            self._start_loop()
        self._call(self._in_loop_submit, attempt)

    def help(self, attempt: Attempt) -> None:
        self._call(self._in_loop_help, attempt)

    def replace(self, run: Run) -> None:
        with self._lock:
            if run.is_over:
                return
            run.is_replaced = True
            self._overruns += 1
            self._active -= 1
        self._call(self._in_loop_replace, run)

    def resize(self, concurrency: int, max_overruns: int) -> None:
        self._concurrency, self._max_overruns = concurrency, max_overruns
        self._call(self._in_loop_fill)

    def stop(self) -> None:
        self._call(self._in_loop_stop)

    def _capacity(self) -> int:
        return max(0, self._concurrency - max(0, self._overruns - self._max_overruns))

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _start_loop(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop,), name=f"{self._name}-handlers", daemon=True
        )
        self._thread.start()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    def _in_loop_submit(self, attempt: Attempt) -> None:
        self._waiting.append(attempt)
        self._in_loop_fill()

    def _in_loop_help(self, attempt: Attempt) -> None:
        for _ in range(min(self._capacity() - self._active, attempt.waiting_lanes)):
            self._in_loop_start(attempt)

    def _in_loop_fill(self) -> None:
        while self._waiting and self._active < self._capacity():
            attempt = self._waiting.popleft()
            self._in_loop_start(attempt)
            self._in_loop_help(attempt)

    def _in_loop_start(self, attempt: Attempt) -> None:
        run = Run()
        with self._lock:
            self._active += 1
        task = self._tasks[run] = asyncio.get_running_loop().create_task(self._work_on(attempt, run))
        task.add_done_callback(lambda done: self._in_loop_leave(run, done))

    async def _work_on(self, attempt: Attempt, run: Run) -> None:
        attempt.join(run, self._deliverer.workplace.clock.monotonic())
        await self._deliverer.work_on_async(attempt, run)
        with attempt.lock:
            attempt.runs.discard(run)

    def _in_loop_leave(self, run: Run, task: "asyncio.Task[None]") -> None:
        del self._tasks[run]
        if not task.cancelled() and task.exception() is not None:
            self.error = task.exception()
        with self._lock:
            run.is_over = True
            if run.is_replaced:
                self._overruns -= 1
            else:
                self._active -= 1
        self._in_loop_fill()
        self._in_loop_end()
        self._on_change()

    def _in_loop_replace(self, run: Run) -> None:
        """Whether it is told or not, others may begin in its place."""
        is_told = run.context is None or run.context.cancelled
        if is_told and (task := self._tasks.get(run)) is not None:
            task.cancel()
        self._in_loop_fill()

    def _in_loop_stop(self) -> None:
        self._is_stopped = True
        self._waiting.clear()
        for task in self._tasks.values():
            task.cancel()
        self._in_loop_end()

    def _in_loop_end(self) -> None:
        """Once stopped: when all that were cancelled have let go."""
        if self._is_stopped and not self._tasks:
            asyncio.get_running_loop().stop()
