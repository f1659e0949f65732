"""One attempt: every message is in exactly one place, however runs, timeouts and the thread that reads take turns."""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from queuecore.consuming.attempt import Attempt, Run
from queuecore.consuming.context import OpenDelivery
from queuecore.consuming.work import Outcome, Work
from queuecore.errors import GivenUp, UndecodableMessage
from queuecore.processing import ProcessingStrategyType, processing_strategy
from tests.unit.queuecore.consuming_kit import a_record, an_attempt, deliverer, worked_on, works


@dataclass
class Walker:
    """A run, step by step: what a thread does between any two locks."""

    run: Run = field(default_factory=Run)
    lane: list[Work] = field(default_factory=list)

    @property
    def at(self) -> Work | None:
        return self.run.current


class Walk:
    """Some runs that work on stages of lanes, and the thread that reads, in any order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.works: list[Work] = []
        self.stage_of: dict[Work, int] = {}
        self.lane_of: dict[Work, tuple[int, int]] = {}
        stages = [
            [self._lane(stage, lane, self.random.randint(1, 4)) for lane in range(self.random.randint(1, 4))]
            for stage in range(self.random.randint(1, 3))
        ]
        kind = self.random.choice(list(ProcessingStrategyType))
        self.attempt = Attempt(stages, processing_strategy(kind, retries=self.random.randint(0, 2)), self._over)
        self.walkers = [Walker() for _ in range(self.random.randint(1, 3))]
        for walker in self.walkers:
            self.attempt.join(walker.run, 0.0)
        self.now = 0.0
        self.overs = 0
        self.begun: list[Work] = []
        self.left_out: list[Work] = []
        self.taken_early: list[Work] = []
        self.is_closed = False
        self.left_behind: dict[Run, Work] = {}

    def step(self) -> None:
        number = self.random.randrange(len(self.walkers))
        outcome = self.random.choice([Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.POSTPONED])
        common = [lambda: self.take_or_begin(number)] * 12 + [lambda: self.end(number, outcome)] * 8
        others = [self.expire, self.expire, self.return_late, self.take_succeeded]
        endings = [self.withdraw, self.close] if self.random.random() < 0.3 else []
        self.random.choice(common + others + endings)()

    def check(self) -> None:
        self.every_message_is_in_one_place()
        self.it_is_over_once()
        self.lanes_and_stages_keep_their_order()
        assert len(self.taken_early) == len(set(self.taken_early)), "nothing is told twice"

    def _lane(self, stage: int, lane: int, size: int) -> list[Work]:
        made = [Work(a_record(len(self.works) + index), (stage, lane)) for index in range(size)]
        self.works += made
        for work in made:
            self.stage_of[work], self.lane_of[work] = stage, (stage, lane)
        return made

    def _over(self) -> None:
        self.overs += 1

    def take_or_begin(self, number: int) -> None:
        walker = self.walkers[number]
        if walker.at is not None or walker.run.is_abandoned:
            return
        if not walker.lane:
            walker.lane = list(self.attempt.next_lane() or [])
        elif not self.attempt.is_open:
            self.attempt.leave_out(len(walker.lane))
            self.left_out += walker.lane
            walker.lane = []
        else:
            self._begin_one(walker)

    def _begin_one(self, walker: Walker) -> None:
        work = walker.lane.pop(0)
        work.deliveries += 1
        self.begun.append(work)
        walker.run.behind = len(walker.lane)
        walker.run.started_at = self.now
        walker.run.current = work

    def end(self, number: int, outcome: Outcome) -> None:
        walker = self.walkers[number]
        if (work := walker.at) is None:
            return
        was_over, before = self.attempt.is_over or walker.run.is_abandoned, work.outcome
        if outcome is Outcome.SUCCEEDED:
            goes_on = self.attempt.succeed(walker.run, work, (), None)
        else:
            error = ValueError("no") if outcome is Outcome.FAILED else None
            goes_on = self.attempt.end(walker.run, work, outcome, error)
        assert walker.at is None
        if was_over:
            assert not goes_on
            assert work.outcome is before, "a late outcome is ignored"
        if not goes_on:
            if not was_over:
                self.left_out += walker.lane
            walker.lane = []

    def return_late(self) -> None:
        """A handler that was left behind returns after all."""
        behind = [run for run in self.left_behind if not run.is_over]
        if not behind:
            return
        run = self.random.choice(behind)
        run.is_over = True
        work = self.left_behind[run]
        before = work.outcome
        assert not self.attempt.succeed(run, work, (), None)
        assert work.outcome is before

    def expire(self) -> None:
        self.now += self.random.choice([0.5, 1.0, 5.0])
        late = self.attempt.expire(self.now, 1.0, cancel=True)
        for work, run in late:
            assert work.outcome is Outcome.TIMED_OUT
            [walker] = [one for one in self.walkers if one.run is run]
            self._replace(walker, work)
        assert all(walker.at is None or self.now - walker.run.started_at < 1.0 for walker in self.walkers)

    def _replace(self, walker: Walker, work: Work) -> None:
        self.left_behind[walker.run] = work
        self.left_out += walker.lane
        walker.lane = []
        walker.run = Run()
        if not self.is_closed:
            self.attempt.join(walker.run, self.now)

    def take_succeeded(self) -> None:
        for work in self.attempt.take_succeeded():
            assert work.outcome is Outcome.SUCCEEDED
            self.taken_early.append(work)

    def withdraw(self) -> None:
        self._note_waiting()
        self.attempt.withdraw()

    def close(self) -> None:
        if self.is_closed:
            return
        self._note_waiting()
        busy = {walker.run: walker.at for walker in self.walkers if walker.at is not None}
        left = self.attempt.close()
        assert {*left} == {*busy}
        self.is_closed = True
        for run in left:
            [walker] = [one for one in self.walkers if one.run is run]
            work = busy[run]
            assert work is not None
            self.left_out.append(work)
            self._replace(walker, work)
            run.current = None

    def _note_waiting(self) -> None:
        """What no run will get any more."""
        for lane in self.attempt._lanes:
            self.left_out += lane
        for stage in self.attempt._stages:
            for lane in stage:
                self.left_out += lane

    def every_message_is_in_one_place(self) -> None:
        places: Counter[Work] = Counter(self.attempt._ended)
        for walker in self.walkers:
            places.update(walker.lane)
            if walker.at is not None:
                places[walker.at] += 1
        for lane in self.attempt._lanes:
            places.update(lane)
        for stage in self.attempt._stages:
            for lane in stage:
                places.update(lane)
        places.update(self.left_out)
        assert set(places) == set(self.works)
        assert max(places.values(), default=1) == 1
        assert all((work.outcome is not Outcome.NOT_SUBMITTED) == (work in self.attempt._ended) for work in self.works)

    def it_is_over_once(self) -> None:
        assert self.overs <= 1
        if self.overs:
            assert self.attempt.is_over
        if self.attempt.is_over and not self.is_closed:
            assert self.overs == 1
            assert not any(walker.at or walker.lane for walker in self.walkers), "nothing is under way any more"

    def lanes_and_stages_keep_their_order(self) -> None:
        for lane in set(self.lane_of.values()):
            order = [work.record.offset for work in self.begun if self.lane_of[work] == lane]
            assert order == sorted(order)
        stages = [self.stage_of[work] for work in self.begun]
        assert stages == sorted(stages)

    def finish(self) -> None:
        """Whatever happened: let the runs go on, and it ends."""
        while any(walker.at or walker.lane for walker in self.walkers) or self.attempt.waiting_lanes:
            for number, walker in enumerate(self.walkers):
                self.take_or_begin(number)
                if walker.at is not None:
                    self.end(number, Outcome.SUCCEEDED)
        assert self.attempt.is_over


@pytest.mark.parametrize("seed", range(150))
def test_a_walk(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(60):
        walk.step()
        walk.check()
    walk.finish()
    walk.check()


class TestLanes:
    def test_messages_of_a_lane_follow_each_other(self) -> None:
        seen: list[int] = []
        attempt = an_attempt(works(0, 2, lane="a"), works(1, 3, lane="b"))
        worked_on(attempt, lambda record, context: seen.append(record.offset))
        assert seen == [0, 2, 1, 3]
        assert attempt.is_over
        assert attempt.is_complete

    @pytest.mark.parametrize(("processing", "seen"), [("SKIP_ALL_FAILURES", [0, 1, 2]), ("RETRY_FAILED", [0, 2])])
    def test_one_that_will_be_tried_again_holds_back_its_lane_alone(self, processing: str, seen: list[int]) -> None:
        def fail_first(record: object, context: OpenDelivery) -> None:
            delivered.append(context.record.offset)
            if context.record.offset == 0:
                raise ValueError("no")

        delivered: list[int] = []
        lane, other = works(0, 1, lane="a"), works(2, lane="b")
        attempt = an_attempt(lane, other, processing=processing)
        worked_on(attempt, fail_first)
        assert delivered == seen
        assert attempt.is_over
        assert (lane[1].outcome is Outcome.SUCCEEDED) == (1 in seen)

    @pytest.mark.parametrize("error", [UndecodableMessage("what is this"), GivenUp("in vain")])
    def test_one_that_is_given_up_at_once_holds_back_nothing(self, error: Exception) -> None:
        def fail(record: object, context: OpenDelivery) -> None:
            if context.record.offset == 0:
                raise error

        lane = works(0, 1, lane="a")
        worked_on(an_attempt(lane, processing="RETRY_FAILED"), fail)
        assert [work.outcome for work in lane] == [Outcome.FAILED, Outcome.SUCCEEDED]
        assert lane[0].error is error

    def test_after_the_time_for_submitting_nothing_is_handed_over(self) -> None:
        lane = works(0, 1, lane="a")
        attempt = an_attempt(lane, submit_s=0.0)
        attempt.join(Run(), 0.0)
        worked_on(attempt, lambda record, context: pytest.fail("too late"))
        assert attempt.is_over
        assert not attempt.is_complete
        assert {work.outcome for work in lane} == {Outcome.NOT_SUBMITTED}

    def test_its_time_begins_when_somebody_works_on_it(self) -> None:
        """Until then it waits for a thread: that is no message's fault."""
        attempt = an_attempt(works(0, 1, lane="a"), submit_s=1.0)
        attempt.join(Run(), 100.0)
        attempt.join(Run(), 500.0)
        assert attempt.submit_until == 101.0


class TestStages:
    @pytest.mark.parametrize(("processing", "third"), [("SKIP_ALL_FAILURES", 1), ("RETRY_FAILED", 0)])
    def test_the_next_begins_when_nothing_holds_it_back(self, processing: str, third: int) -> None:
        def fail_first(record: object, context: OpenDelivery) -> None:
            if context.record.offset == 0:
                raise ValueError("no")

        lanes = [works(offset) for offset in range(3)]
        attempt = Attempt([lanes[:2], lanes[2:]], processing_strategy(processing), lambda: None)
        worked_on(attempt, fail_first)
        assert [lane[0].deliveries for lane in lanes] == [1, 1, third]
        assert attempt.is_over


class TestTimeouts:
    def test_one_whose_handler_has_returned_does_not_time_out(self) -> None:
        """Who looks just then finds that it has ended, and not what it was at."""
        [work] = lane = works(0)
        attempt = an_attempt(lane, works(1))
        run = Run()
        attempt.join(run, 0.0)
        attempt.next_lane()
        run.current, run.started_at = work, 0.0
        assert attempt.succeed(run, work, (), None)
        assert attempt.expire(100.0, 1.0, cancel=True) == []
        assert (work.outcome, attempt.is_over) == (Outcome.SUCCEEDED, False)

    @pytest.mark.parametrize("cancel", [True, False])
    def test_its_handler_is_told_where_the_strategy_says_so(self, cancel: bool) -> None:
        [work] = lane = works(0)
        attempt = an_attempt(lane)
        run = Run()
        attempt.join(run, 0.0)
        attempt.next_lane()
        context = OpenDelivery(deliverer(print).workplace, work.record, 1)
        run.current, run.context = work, context
        assert attempt.expire(1.0, 1.0, cancel=cancel) == [(work, run)]
        assert (context.cancelled, attempt.is_over, work.outcome) == (cancel, True, Outcome.TIMED_OUT)
        assert isinstance(work.error, TimeoutError)
