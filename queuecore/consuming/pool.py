"""Threads that run handlers: a few that last, and those left behind with a handler that overran its time."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from queuecore.consuming.attempt import Attempt, Run
from queuecore.consuming.delivering import Deliverer

logger = logging.getLogger(__name__)


class Pool(Protocol):
    """Who works on attempts. For the thread that reads, where it does not say otherwise."""

    def submit(self, attempt: Attempt) -> None:
        """Have one run work on it."""

    def help(self, attempt: Attempt) -> None:
        """Have as many runs as are free work on it, if it goes on for longer."""

    def replace(self, run: Run) -> None:
        """A run was left behind."""

    # A defect that ended a thread of it: what that was at will never be over.
    error: BaseException | None

    @property
    def overruns(self) -> int:
        """How many of those are still not over."""

    @property
    def is_stuck(self) -> bool:
        """Whether so many were left behind that none is there to go on."""

    @property
    def is_this_thread(self) -> bool:
        """Whether the caller is one of its handlers."""

    def resize(self, concurrency: int, max_overruns: int) -> None: ...

    def stop(self) -> None:
        """No new work; threads end with what they have."""


class ThreadPool:
    """Threads are started when there is work for them. Work is handed over by the pack: who is free takes lanes of it,
    one after the other, until none is left; so messages cost no hand-over between threads each."""

    def __init__(
        self, name: str, deliverer: Deliverer, concurrency: int, max_overruns: int, on_change: Callable[[], None]
    ) -> None:
        self._name = name
        self._deliverer = deliverer
        self._concurrency = concurrency
        self._max_overruns = max_overruns
        self._on_change = on_change
        self._changed = threading.Condition(threading.Lock())
        # One for each run that is wanted.
        self._wanted: deque[Attempt] = deque()
        self._alive = self._idle = self._overruns = self._started = 0
        self._threads: set[threading.Thread] = set()
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
        return threading.current_thread() in self._threads

    def submit(self, attempt: Attempt) -> None:
        self._want(attempt, 1)

    def help(self, attempt: Attempt) -> None:
        with self._changed:
            free = self._idle + max(0, self._capacity() - self._alive) - len(self._wanted)
        if (more := min(free, attempt.waiting_lanes)) > 0:
            self._want(attempt, more)

    def replace(self, run: Run) -> None:
        with self._changed:
            if not run.is_over:
                run.is_replaced = True
                self._overruns += 1
                self._alive -= 1
                self._fill()
        if self.is_stuck:
            logger.error("%s: %d handlers overran their time and still run; none is left", self._name, self._overruns)

    def resize(self, concurrency: int, max_overruns: int) -> None:
        with self._changed:
            self._concurrency, self._max_overruns = concurrency, max_overruns
            self._fill()
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._wanted.clear()
            self._changed.notify_all()

    def _capacity(self) -> int:
        """How many threads there may be, less those that would exceed the bound on what is left behind."""
        return max(0, self._concurrency - max(0, self._overruns - self._max_overruns))

    def _want(self, attempt: Attempt, runs: int) -> None:
        with self._changed:
            if self._is_stopped:
                return
            self._wanted.extend([attempt] * runs)
            self._fill()
            self._changed.notify(runs)

    def _fill(self) -> None:
        """Start threads for what nobody is free to take, as far as there may be more."""
        for _ in range(min(len(self._wanted) - self._idle, self._capacity() - self._alive)):
            self._start_thread()

    def _start_thread(self) -> None:
        self._alive += 1
        self._started += 1
        # Until it has taken something.
        self._idle += 1
        thread = threading.Thread(target=self._run, name=f"{self._name}-handler-{self._started}", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError as error:
            # The system has no room for another: whoever reads has to hear of it.
            self._threads.discard(thread)
            self._alive -= 1
            self._idle -= 1
            self.error = error

    def _run(self) -> None:
        run = Run()
        try:
            while not run.is_abandoned and (attempt := self._next(run)) is not None:
                self._work_on(attempt, run)
                self._rest(run)
        except BaseException as error:
            self.error = error
        finally:
            self._leave(run)

    def _next(self, run: Run) -> Attempt | None:
        """None when this thread is one too many."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self._is_stopped or self._alive > self._capacity())
            self._idle -= 1
            if not self._is_stopped and self._alive <= self._capacity():
                return self._wanted.popleft()
            # Counted at once: the next one that looks must not go for the same reason.
            self._alive -= 1
            run.is_over = True
            return None

    def _work_on(self, attempt: Attempt, run: Run) -> None:
        attempt.join(run, self._deliverer.workplace.clock.monotonic())
        self._deliverer.work_on(attempt, run)
        with attempt.lock:
            attempt.runs.discard(run)

    def _rest(self, run: Run) -> None:
        if not run.is_abandoned:
            with self._changed:
                self._idle += 1

    def _leave(self, run: Run) -> None:
        with self._changed:
            self._threads.discard(threading.current_thread())
            if run.is_replaced:
                self._overruns -= 1
            elif not run.is_over:
                self._alive -= 1
            run.is_over = True
            self._fill()
            self._changed.notify_all()
        self._on_change()
