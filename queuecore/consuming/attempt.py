"""One attempt at some messages, shared by the thread that reads and the threads of handlers."""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from queuecore.consuming.context import OpenDelivery
from queuecore.consuming.work import Outcome, Work
from queuecore.processing.strategies import ProcessingStrategy
from queuecore.sending import Addressed

# Per message, with everything around the handler.
_SLOW_S: Final = 0.000_1
_CARRIES_ON = (Outcome.SUCCEEDED, Outcome.PASSED_OVER)


class Run:
    """One handler at work: a thread or a task. What it works on changes, itself it stays until it is left behind.

    Written by its own thread, but for `is_abandoned`, which is written under the lock of the attempt it works on.
    """

    __slots__ = ("behind", "context", "current", "is_abandoned", "is_over", "is_replaced", "started_at")

    def __init__(self) -> None:
        self.current: Work | None = None
        # How many messages of its lane come after that one.
        self.behind = 0
        self.context: OpenDelivery | None = None
        self.started_at = 0.0
        # Left behind: its time was up. What becomes of its message is ignored.
        self.is_abandoned = False
        # Left behind, and another may be started instead.
        self.is_replaced = False
        # Left behind, and returned in the end.
        self.is_over = False


class Attempt:
    """Who may work on what, and what became of it.

    Each message is in exactly one place: in a lane that waits, with a run, among those that have ended, or, when the
    attempt is over, not submitted. A lane is one run's at a time, so its messages keep their order; a message that will
    be tried again ends its lane's turn.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[list[Work]]],
        processing: ProcessingStrategy,
        on_over: Callable[[], None],
        submit_s: float = float("inf"),
        *,
        holds_given_up: bool = False,
    ) -> None:
        self.lock = self.new_lock()
        self.runs: set[Run] = set()
        # For how long messages are handed over, from when somebody works on it; until then it waits, however long.
        self._submit_s = submit_s
        self._began_at: float | None = None
        self.submit_until = float("inf")
        self._processing = processing
        # Whether a message that is given up may be open again once the attempt is over.
        self._holds_given_up = holds_given_up
        self._on_over = on_over
        self._stages = deque(stages)
        self._lanes: deque[list[Work]] = deque()
        # How many messages of the stage have neither ended nor been left out.
        self._remaining = 0
        self._ended: list[Work] = []
        self._taken = 0
        self._is_holding = False
        # How many messages of which tenant have succeeded.
        self.tenants: defaultdict[bytes | None, int] = defaultdict(int)
        # Whether nothing was left out, and all that has ended has succeeded.
        self.is_clean = True
        self.is_open = True
        self.is_over = False
        self._begin_stage()

    @staticmethod
    def new_lock() -> AbstractContextManager[bool]:
        return threading.Lock()

    @property
    def is_complete(self) -> bool:
        """Whether every message has succeeded."""
        return self.is_clean and self.is_open and not self._lanes and self._remaining == 0

    @property
    def waiting_lanes(self) -> int:
        """How many more runs would find something to do."""
        return len(self._lanes)

    def took_s(self, now: float) -> float:
        """Since a handler began with it."""
        return 0.0 if self._began_at is None else now - self._began_at

    def is_slow(self, now: float) -> bool:
        """Whether its messages take so long that more threads would help: where they do not, threads that take turns
        only cost time."""
        return self.took_s(now) > _SLOW_S * (len(self._ended) + 1)

    def join(self, run: Run, now: float) -> None:
        """This run works on it from now on."""
        with self.lock:
            if self._began_at is None:
                self._began_at = now
                self.submit_until = now + self._submit_s
            self.runs.add(run)

    def next_lane(self) -> list[Work] | None:
        """A lane of its own for the run that asks; None where none is left for now."""
        try:
            return self._lanes.popleft()
        except IndexError:
            return None

    def succeed(self, run: Run, work: Work, outgoing: tuple[Addressed, ...], tenant: bytes | None) -> bool:
        """A handler has returned. False: nobody wanted that any more, and the run must go."""
        with self.lock:
            # Here and not later: who looks for runs whose time is up must not find one that has ended.
            run.current = None
            if run.is_abandoned or self.is_over:
                return False
            work.outcome = Outcome.SUCCEEDED
            if outgoing:
                work.outgoing = outgoing
            self.tenants[tenant] += 1
            self._ended.append(work)
            self._remaining -= 1
            if self._remaining == 0:
                self._end_stage()
            return True

    def end(
        self, run: Run, work: Work, outcome: Outcome, error: BaseException | None = None, due_at: float = 0.0
    ) -> bool:
        """A handler has ended otherwise. Whether its run goes on with its lane."""
        with self.lock:
            run.current = None
            if run.is_abandoned or self.is_over:
                return False
            work.trouble.due_at = due_at
            holds = self._holds(work, outcome, error)
            self._end(work, outcome, run.behind if holds else 0)
            return not holds

    def pass_over(self, run: Run, work: Work) -> None:
        """A replay for another group: done, without a handler."""
        with self.lock:
            if not run.is_abandoned and not self.is_over:
                work.is_special = True
                self._end(work, Outcome.PASSED_OVER, 0)

    def leave_out(self, messages: int) -> None:
        """So many messages of a lane are not submitted any more."""
        with self.lock:
            self._leave_out(messages)

    def expire(self, now: float, timeout_s: float, *, cancel: bool) -> list[tuple[Work, Run]]:
        """Leave behind the runs whose time is up, and what they were at. The rest of their lanes is not submitted,
        whatever the strategy: a handler that was left behind may still be at work."""
        late = []
        with self.lock:
            for run in list(self.runs):
                work = run.current
                if work is None or now - run.started_at < timeout_s:
                    continue
                self._abandon(run, cancel=cancel)
                error = TimeoutError(f"the handler did not return within {timeout_s:g} s")
                self._holds(work, Outcome.TIMED_OUT, error)
                self._end(work, Outcome.TIMED_OUT, run.behind)
                late.append((work, run))
        return late

    def withdraw(self) -> None:
        """Submit nothing more; what is under way may end."""
        with self.lock:
            self._withdraw()

    def close(self) -> list[Run]:
        """It is over now: what is still under way is not submitted, and its outcome ignored. The runs left behind."""
        with self.lock:
            self._withdraw()
            self.is_over = True
            busy = [run for run in self.runs if run.current is not None]
            for run in busy:
                self._abandon(run, cancel=True)
            return busy

    def take_succeeded(self) -> list[Work]:
        """What succeeded since the last time, while the attempt goes on. Those that did not are decided on together,
        when it is over."""
        with self.lock:
            taken, self._taken = self._taken, len(self._ended)
            return [work for work in self._ended[taken:] if work.outcome in _CARRIES_ON]

    def _holds(self, work: Work, outcome: Outcome, error: BaseException | None) -> bool:
        """Whether it will be tried again, or may be, and so holds back its lane and the next stage."""
        work.trouble.error = error
        holds = outcome is Outcome.POSTPONED or self._holds_given_up or self._processing.may_retry(work, outcome)
        self._is_holding = self._is_holding or holds
        return holds

    def _end(self, work: Work, outcome: Outcome, left_out: int) -> None:
        work.outcome = outcome
        self.is_clean = False
        self._ended.append(work)
        self._remaining -= 1
        self._leave_out(left_out)
        if self._remaining == 0 and not self.is_over:
            self._end_stage()

    def _leave_out(self, messages: int) -> None:
        if messages and not self.is_over:
            self.is_clean = False
            self._remaining -= messages
            if self._remaining == 0:
                self._end_stage()

    def _abandon(self, run: Run, *, cancel: bool) -> None:
        run.is_abandoned = True
        self.runs.discard(run)
        if cancel and run.context is not None:
            run.context.cancel()

    def _withdraw(self) -> None:
        self.is_open = False
        self._stages.clear()
        # One by one: a run may take a lane meanwhile, which is then its to leave out.
        while (lane := self.next_lane()) is not None:
            self._leave_out(len(lane))

    def _begin_stage(self) -> None:
        lanes = self._stages.popleft()
        self._remaining = sum(map(len, lanes))
        self._lanes.extend(lanes)

    def _end_stage(self) -> None:
        if self._stages and self.is_open and not self._is_holding:
            self._begin_stage()
        else:
            self.is_over = True
            self._on_over()
