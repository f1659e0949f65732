"""One partition under every pair of strategies: nothing is lost, nothing is finished twice, order is kept, bounds hold.

A walk plays the thread that reads, the handlers and the clock, at random; there is no thread.
"""

import random
from collections.abc import Callable, Hashable

import pytest

from queuecore.consuming.attempt import Attempt, Run
from queuecore.consuming.context import OpenDelivery
from queuecore.consuming.partition import PartitionWork
from queuecore.consuming.work import Outcome, Work
from queuecore.messages import TENANT_ID, Record
from queuecore.processing import ProcessingStrategyType, processing_strategy
from queuecore.submit import SubmitStrategyType, submit_strategy
from queuecore.testing.clock import ManualClock
from tests.unit.queuecore.consuming_kit import INFO, a_plan, a_record, deliverer

TIMEOUT_S, OVERRUN_S, PAUSE_S = 1.0, 5.0, 2.0
TENANTS = ("", "red", "blue")
TROUBLES = ("fail", "fail", "hang", "postpone", "withdraw")
STEPS = 150


class Hung(BaseException):
    """The handler goes on while the test does something else."""


class Walk:
    def __init__(self, submit: SubmitStrategyType, processing: ProcessingStrategyType, seed: int) -> None:
        self.random = random.Random(f"{submit} {processing} {seed}")
        pack_size = self.random.randint(1, 6)
        self.plan = a_plan(
            submit=submit_strategy(submit, batch_size=2),
            processing=processing_strategy(
                processing,
                retries=self.random.randint(0, 2),
                failure_percentage=self.random.choice([0, 0, 50]),
                pause_ms=round(PAUSE_S * 1000),
                max_pause_ms=10_000,
            ),
            timeout_ms=round(TIMEOUT_S * 1000),
            overrun_limit_ms=round(OVERRUN_S * 1000),
            pack_size=pack_size,
            max_open=pack_size + self.random.randint(0, 6),
            max_open_bytes=self.random.choice([20, 1_000]),
        )
        self.clock = ManualClock()
        self.part = PartitionWork(INFO, self.plan, self.clock, lambda: None)
        self.offered: list[int] = []
        self.lanes: dict[int, Hashable] = {}
        self.sizes: dict[int, int] = {}
        self.finished: dict[int, str] = {}
        self.unsettled: list[int] = []
        # Those that have ended in the attempt under way, and hold back nothing.
        self.ended: set[int] = set()
        # Handlers that were left behind, and how long their lane waits for them.
        self.overruns: dict[Run, tuple[int, float]] = {}
        self.busy: dict[Run, Work] = {}
        self.paused: frozenset[str] = frozenset()

    def step(self) -> None:
        often = [self.offer, self.begin, self.work, self.conclude, self.pass_time]
        seldom = [self.pause_tenants, self.expire, self.return_late, self.take_succeeded, self.settle]
        seldom.append(self.replace_stuck)
        self.random.choice(often * 3 + seldom)()

    def check(self) -> None:
        self.nothing_is_lost()
        self.bounds_hold()
        self.the_watermark_passes_nothing_that_is_open()

    @property
    def now(self) -> float:
        return self.clock.monotonic()

    def offer(self) -> None:
        """Some more, with gaps between their offsets."""
        if self.part.is_full:
            return
        start = (self.offered[-1] if self.offered else -1) + 1
        records = [self._record(start + 2 * index) for index in range(self.random.randint(1, 8))]
        for record in records:
            self.offered.append(record.offset)
            self.lanes[record.offset] = self.plan.submit.lane_of(record)
            self.sizes[record.offset] = record.size
        self.part.offer(records)

    def _record(self, offset: int) -> Record:
        key, tenant = self.random.choice([b"a", b"b", None]), self.random.choice(TENANTS)
        return a_record(offset, key=key, tenant=tenant, data=bytes(self.random.randint(0, 9)))

    def pause_tenants(self) -> None:
        self.paused = frozenset(self.random.choice([(), (), TENANTS[1:2], TENANTS[1:]]))

    def begin(self) -> None:
        if self.part.attempt is not None:
            return
        had_room = self.plan.max_open - self.part.tracker.open
        had_open, was_short = bool(self.part._open), self._open_bytes() >= self.plan.max_open_bytes
        attempt = self.part.begin(self.now, self.paused)
        begun = [work.record.offset for work in self.part.begun]
        assert len(begun) <= min(max(0, had_room), self.plan.pack_size)
        if had_open and was_short:
            assert not begun, "memory is short"
        expected = self._expected()
        assert [work.record.offset for work in self.part._attempted] == (expected if attempt is not None else [])
        assert (attempt is None) == (expected == [])
        self.ended = set()

    def _expected(self) -> list[int]:
        """What is due, and behind nothing that is not: lanes that are held hold only themselves."""
        held: set[Hashable] = {self.lanes[offset] for run, (offset, _) in self.overruns.items() if not run.is_over}
        expected = []
        for work in self.part._open:
            lane = self.lanes[work.record.offset]
            tenant = work.record.headers.get(TENANT_ID, b"").decode()
            if work.due_at > self.now or tenant in self.paused:
                if self.plan.submit.holds_all:
                    break
                held.add(lane)
            elif lane is None or lane not in held:
                expected.append(work.record.offset)
        return expected

    def work(self, risk: float | None = None) -> None:
        """One run works on. A handler that hangs keeps its run."""
        attempt, run = self.part.attempt, Run()
        if attempt is None or attempt.is_over:
            return
        attempt.join(run, self.now)
        handler = self._handler(attempt, run, self.random.choice([0, 0.2, 0.6]) if risk is None else risk)
        try:
            deliverer(handler, self.clock).work_on(attempt, run)
        except Hung:
            del attempt.end
            return
        attempt.runs.discard(run)

    def _handler(self, attempt: Attempt, run: Run, risk: float) -> Callable[..., None]:
        def handle(_: object, context: OpenDelivery) -> None:
            offset = context.record.offset
            self._check_turn(offset)
            act = self.random.choice(TROUBLES) if self.random.random() < risk else "succeed"
            if act == "hang":
                self._hang(attempt, run)
            if act == "withdraw":
                attempt.withdraw()
            if act == "postpone":
                context.postpone(PAUSE_S)
            elif act == "fail":
                work = run.current
                assert work is not None
                if not self.plan.processing.may_retry(work, Outcome.FAILED):
                    self.ended.add(offset)
                raise ValueError("no")
            else:
                self.ended.add(offset)

        return handle

    def _hang(self, attempt: Attempt, run: Run) -> None:
        """Nobody hears of its end: as if the handler's thread did not come back from it."""
        work = run.current
        assert work is not None
        self.busy[run] = work
        attempt.end = _hang_on  # type: ignore[method-assign]
        raise Hung

    def _check_turn(self, offset: int) -> None:
        """All before it in its lane are done, or ended in this attempt; and nobody is at work on one of them."""
        assert offset not in self.finished
        lane = self.lanes[offset]
        if lane is None:
            return
        for other in self.offered:
            if other < offset and self.lanes[other] == lane:
                assert other in self.finished or other in self.ended, f"{other} is before {offset}"
        for run, (other, _) in self.overruns.items():
            assert run.is_over or self.lanes[other] != lane

    def pass_time(self) -> None:
        self.clock.advance(self.random.choice([0.25, 1.0, 2.0, 10.0]))

    def expire(self) -> None:
        for run in self.part.expire(self.now):
            work = self.busy.pop(run)
            self.overruns[run] = (work.record.offset, self.now + OVERRUN_S)
            if not self.plan.processing.may_retry(work, Outcome.TIMED_OUT):
                self.ended.add(work.record.offset)

    def return_late(self) -> None:
        if self.overruns:
            self.random.choice(list(self.overruns)).is_over = True

    def replace_stuck(self) -> None:
        """Lanes waited too long: their messages are given up, and the process with their handlers comes to its end."""
        attempted = {work.record.offset for work in self.part._attempted}
        late = {
            offset
            for run, (offset, until) in self.overruns.items()
            if not run.is_over and self.now >= until and offset not in attempted
        }
        assert self.part.is_stuck(self.now) == any(self.lanes[offset] is not None for offset in late)
        given_up = [work.record.offset for work in self.part.take_stuck(self.now)]
        assert {*given_up} <= late
        self._finish(given_up, "given up")
        for run, (offset, _) in self.overruns.items():
            run.is_over = run.is_over or offset in late

    def take_succeeded(self) -> None:
        self._finish([work.record.offset for work in self.part.take_succeeded()], "done")

    def conclude(self) -> None:
        if self.part.attempt is None or not self.part.attempt.is_over:
            return
        verdict = self.part.conclude(self.now)
        self._finish([work.record.offset for work in verdict.done], "done")
        self._finish([work.record.offset for work in verdict.given_up], "given up")
        assert all(work.reason for work in verdict.given_up)
        assert not any(work.record.offset in self.finished for work in verdict.again)
        self.ended = set()

    def _finish(self, offsets: list[int], how: str) -> None:
        for offset in offsets:
            assert offset not in self.finished, "finished twice"
            self.finished[offset] = how
        self.unsettled += offsets

    def settle(self) -> None:
        settled = self.random.sample(self.unsettled, self.random.randint(0, len(self.unsettled)))
        self.unsettled = [offset for offset in self.unsettled if offset not in settled]
        self.part.tracker.complete(sorted(settled))

    def _bytes(self) -> int:
        return sum(size for offset, size in self.sizes.items() if offset not in self.finished)

    def _open_bytes(self) -> int:
        return sum(self.sizes[work.record.offset] for work in self.part._open if not work.is_finished)

    def nothing_is_lost(self) -> None:
        held = [record.offset for record in self.part._intake] + [
            work.record.offset for work in self.part._open if not work.is_finished
        ]
        assert sorted([*held, *self.finished]) == self.offered
        assert self.part.progress == len(self.finished)

    def bounds_hold(self) -> None:
        assert self.part.tracker.open <= self.plan.max_open
        assert self.part._bytes == self._bytes()

    def the_watermark_passes_nothing_that_is_open(self) -> None:
        if self.part.tracker.watermark is None:
            return
        below = [offset for offset in self.offered if offset < self.part.tracker.watermark]
        assert all(offset in self.finished and offset not in self.unsettled for offset in below)

    def finish(self) -> None:
        """Whatever happened, once all goes well everything is finished."""
        self.paused = frozenset()
        while len(self.finished) < len(self.offered):
            self.clock.advance(60.0)
            self.expire()
            for run in self.overruns:
                run.is_over = True
            if self.part.attempt is None:
                self.unsettled, settled = [], sorted(self.unsettled)
                self.part.tracker.complete(settled)
                self.begin()
            if self.part.attempt is not None and not self.part.attempt.is_over:
                self.work(risk=0)
            if self.part.attempt is not None and self.part.attempt.is_over:
                self.conclude()


def _hang_on(*_: object) -> bool:
    raise Hung


@pytest.mark.parametrize("submit", SubmitStrategyType)
@pytest.mark.parametrize("processing", ProcessingStrategyType)
@pytest.mark.parametrize("seed", range(4))
def test_a_walk(submit: SubmitStrategyType, processing: ProcessingStrategyType, seed: int) -> None:
    walk = Walk(submit, processing, seed)
    for _ in range(STEPS):
        walk.step()
        walk.check()
    walk.finish()
    walk.check()
