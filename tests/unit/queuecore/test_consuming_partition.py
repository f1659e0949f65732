"""One partition, case by case: what waits, what is suspect after a crash, what is full. Its rules at large are in
`test_consuming_partition_model.py`."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from queuecore.consuming.attempt import Run
from queuecore.consuming.context import OpenDelivery
from queuecore.consuming.marks import Mark
from queuecore.consuming.partition import PartitionWork
from queuecore.errors import ConfigurationError
from queuecore.processing import ProcessingStrategy, processing_strategy
from queuecore.testing.clock import ManualClock
from tests.unit.queuecore.consuming_kit import (
    BY_ORIGINATOR,
    INFO,
    NO_RETRY,
    SEQUENTIAL,
    a_plan,
    a_record,
    deliverer,
)

RETRY = processing_strategy("RETRY_FAILED_AND_TIMED_OUT", pause_ms=2_000)


@dataclass
class Noted:
    """A mark that says what was done with it."""

    found: Mark | None = None
    mark: Mark | None = None
    is_closed: bool = False
    is_free: bool = True
    has_claim: bool = False
    is_exclusive: bool = False

    def left_behind(self) -> Mark | None:
        return self.found

    def claim(self, *, exclusive: bool = False) -> bool:
        self.has_claim, self.is_exclusive = self.is_free, exclusive
        return self.is_free

    def release(self) -> None:
        self.has_claim = False

    def set(self, first: int, last: int, *, alone: bool) -> bool:
        if self.is_free:
            self.mark = Mark(first, last, alone)
        return self.is_free

    def clear(self) -> None:
        self.mark = None

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Desk:
    """A partition, its clock, and a handler in this thread that notes what it gets."""

    part: PartitionWork
    clock: ManualClock
    mark: Noted
    seen: list[int] = field(default_factory=list)
    run: Run = field(default_factory=Run)

    @property
    def now(self) -> float:
        return self.clock.monotonic()

    def offer(self, *offsets: int, key: bytes | None = None, tenant: str = "") -> None:
        self.part.offer([a_record(offset, key=key, tenant=tenant) for offset in offsets])

    def begin(self, *paused_tenants: str) -> list[int]:
        """What is handed over next."""
        return (
            []
            if self.part.begin(self.now, paused_tenants) is None
            else [work.record.offset for work in self.part._attempted]
        )

    def work(self, *failing: int) -> None:
        def handle(_: object, context: OpenDelivery) -> None:
            self.seen.append(context.record.offset)
            if context.record.offset in failing:
                raise ValueError("no")

        assert self.part.attempt is not None
        self.run = Run()
        self.part.attempt.join(self.run, self.now)
        deliverer(handle, self.clock).work_on(self.part.attempt, self.run)

    def go_round(self, *failing: int) -> list[int]:
        """One attempt from its beginning to its end: what was handed over."""
        begun = self.begin()
        if begun:
            self.work(*failing)
            self.part.conclude(self.now)
        return begun

    def overrun(self) -> Run:
        """A handler takes the next lane, and its time passes."""
        attempt = self.part.attempt
        assert attempt is not None
        [work, *rest] = attempt.next_lane() or []
        run = Run()
        attempt.join(run, self.now)
        run.behind, run.started_at, run.current = len(rest), self.now, work
        work.deliveries += 1
        self.clock.advance(60.0)
        assert self.part.expire(self.now) == [run]
        return run


Make = Callable[..., Desk]


@pytest.fixture
def make() -> Make:
    def desk(found: Mark | None = None, **changes: object) -> Desk:
        clock, mark = ManualClock(), Noted(found)
        plan = a_plan(**{"processing": RETRY, "timeout_ms": 60_000, "overrun_limit_ms": 10_000, **changes})
        return Desk(PartitionWork(INFO, plan, clock, lambda: None, 1, mark), clock, mark)

    return desk


class TestWaiting:
    def test_a_pause_holds_back_its_lane_and_nothing_else(self, make: Make) -> None:
        desk = make(submit=BY_ORIGINATOR)
        desk.offer(0, 2, key=b"a")
        desk.offer(3, key=b"b")
        assert desk.go_round(0) == [0, 2, 3]
        assert desk.seen == [0, 3]
        desk.offer(5, key=b"b")
        desk.offer(6, key=b"a")
        assert desk.go_round() == [5]
        desk.clock.advance(2.0)
        assert desk.go_round() == [0, 2, 6]
        assert desk.part.is_idle

    def test_in_one_sequence_everything_waits(self, make: Make) -> None:
        desk = make(submit=SEQUENTIAL)
        desk.offer(0, 1)
        desk.go_round(0)
        desk.offer(2)
        assert desk.begin() == []
        desk.clock.advance(2.0)
        assert desk.go_round() == [0, 1]
        assert desk.go_round() == [2]

    def test_it_says_when_something_is_due_again(self, make: Make) -> None:
        desk = make()
        desk.offer(0, 1)
        assert desk.part.next_due(desk.now) is None
        desk.go_round(0)
        assert desk.part.next_due(desk.now) == 2.0

    @pytest.mark.parametrize("reason", ["its partition stands still", "its tenant is paused", "its lane is busy"])
    def test_what_is_due_and_cannot_be_handed_over_keeps_nobody_busy(self, make: Make, reason: str) -> None:
        """Else who reads would look for it again and again."""
        desk = make(submit=BY_ORIGINATOR)
        desk.offer(0, key=b"a", tenant="t")
        desk.begin()
        if reason == "its lane is busy":
            desk.overrun()
            desk.part.conclude(desk.now)
        else:
            desk.work(0)
            desk.part.conclude(desk.now)
        desk.clock.advance(5.0)
        if reason == "its partition stands still":
            desk.part.paused = reason
        assert desk.begin(*(["t"] if reason == "its tenant is paused" else [])) == []
        assert desk.part.next_due(desk.now) == (70.0 if reason == "its lane is busy" else None)

    def test_one_that_is_paused_by_itself_begins_nothing_and_wants_nothing(self, make: Make) -> None:
        desk = make()
        desk.offer(0)
        desk.part.paused = "too many dead letters"
        assert desk.begin() == []
        assert desk.part.is_full

    def test_what_a_tenant_is_paused_for_waits_while_others_go_on(self, make: Make) -> None:
        desk = make()
        desk.offer(0, tenant="red")
        desk.offer(1, tenant="blue")
        assert desk.begin("red") == [1]
        desk.work()
        desk.part.conclude(desk.now)
        assert desk.begin() == [0]


class TestOverruns:
    @pytest.mark.parametrize(("processing", "tried_again"), [(NO_RETRY, []), (RETRY, [0])])
    def test_its_lane_waits_for_a_handler_that_overran_and_is_stuck_in_the_end(
        self, make: Make, processing: ProcessingStrategy, tried_again: list[int]
    ) -> None:
        desk = make(submit=BY_ORIGINATOR, processing=processing)
        desk.offer(0, 1, key=b"a")
        desk.begin()
        desk.overrun()
        assert [work.record.offset for work in desk.part.conclude(desk.now).again] == tried_again
        assert desk.begin() == []
        assert not desk.part.is_stuck(desk.now)
        desk.clock.advance(10.0)
        assert desk.begin() == []
        assert desk.part.is_stuck(desk.now)
        assert [work.record.offset for work in desk.part.take_stuck(desk.now)] == tried_again

    def test_or_until_it_is_over(self, make: Make) -> None:
        desk = make(submit=BY_ORIGINATOR, processing=NO_RETRY)
        desk.offer(0, 1, key=b"a")
        desk.begin()
        run = desk.overrun()
        desk.part.conclude(desk.now)
        run.is_over = True
        assert desk.begin() == [1]


class TestRoom:
    def test_packs_are_as_large_as_planned(self, make: Make) -> None:
        desk = make(pack_size=2, max_open=3)
        desk.offer(0, 1, 2, 3, 4)
        assert desk.part.is_full
        assert desk.go_round(0, 1) == [0, 1]
        assert desk.go_round() == [2]
        assert desk.begin() == [], "no more may be open"
        desk.part.tracker.complete([0])
        assert desk.begin() == [3]

    def test_what_is_large_is_read_a_pack_at_a_time(self, make: Make) -> None:
        desk = make(max_open_bytes=3, pack_size=2)
        desk.offer(0, 1, 2)
        assert desk.part.is_full
        desk.go_round()
        assert not desk.part.is_full

    def test_a_plan_without_room_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="max_open is 5, less than a pack of 10; raise it"):
            a_plan(pack_size=10, max_open=5)
        with pytest.raises(ConfigurationError, match="concurrency is 0; use 1 or more"):
            a_plan(concurrency=0)


class TestChanging:
    def test_what_is_open_goes_on_by_the_new_plan(self, make: Make) -> None:
        desk = make()
        desk.offer(0, 1, key=b"a")
        desk.go_round(0, 1)
        desk.part.follow(a_plan(submit=BY_ORIGINATOR, processing=RETRY))
        desk.clock.advance(2.0)
        assert desk.begin() == [0, 1]
        desk.work(0)
        assert desk.seen == [0, 1, 0], "in sequence now"

    def test_a_handler_that_overran_holds_back_its_lane_by_the_new_plan_too(self, make: Make) -> None:
        desk = make(submit=SEQUENTIAL, processing=NO_RETRY)
        desk.offer(0, 1, key=b"a")
        desk.offer(2, key=b"b")
        desk.begin()
        desk.overrun()
        desk.part.conclude(desk.now)
        desk.part.follow(a_plan(submit=BY_ORIGINATOR, processing=NO_RETRY))
        assert desk.begin() == [2]

    def test_what_was_taken_and_is_not_ours_is_forgotten(self, make: Make) -> None:
        desk = make()
        desk.offer(0)
        desk.go_round(0)
        desk.offer(1)
        desk.clock.advance(2.0)
        assert desk.begin() == [0, 1]
        desk.part.forget_begun()
        assert (desk.part.attempt, desk.part.open) == (None, 1)

    def test_what_is_reopened_begins_anew(self, make: Make) -> None:
        desk = make(processing=NO_RETRY)
        desk.offer(0, 1)
        desk.begin()
        desk.work(1)
        given_up = desk.part.conclude(desk.now).given_up
        assert desk.part.is_idle
        desk.part.reopen(given_up)
        assert (desk.part.open, [work.failures for work in given_up]) == (1, [0])
        assert desk.begin() == [1]


class TestAfterACrash:
    def test_while_a_pack_is_with_handlers_a_mark_says_so(self, make: Make) -> None:
        desk = make()
        desk.offer(3, 4)
        desk.begin()
        assert desk.mark.mark == Mark(3, 4, alone=False)
        desk.work()
        desk.part.conclude(desk.now)
        assert desk.mark.mark is None

    def test_what_was_with_handlers_is_handled_one_by_one(self, make: Make) -> None:
        desk = make(found=Mark(1, 2, alone=False))
        desk.offer(0, 1, 2, 3, 4)
        marks = []
        for _ in range(5):
            if desk.begin():
                marks.append(desk.mark.mark)
                desk.work()
                desk.part.conclude(desk.now)
        assert marks == [
            Mark(0, 0, alone=True),
            Mark(1, 1, alone=True),
            Mark(2, 2, alone=True),
            Mark(3, 3, alone=False),
            Mark(4, 4, alone=False),
        ]
        assert desk.part.take_killer() is None

    def test_a_suspect_waits_while_another_of_its_process_is_handled(self, make: Make) -> None:
        desk = make(found=Mark(0, 0, alone=False))
        desk.offer(0)
        desk.mark.is_free = False
        assert desk.begin() == []
        desk.mark.is_free = True
        assert desk.begin() == [0]
        assert desk.mark.has_claim
        desk.work()
        desk.part.conclude(desk.now)
        assert not desk.mark.has_claim

    def test_one_of_a_tenant_that_is_paused_waits_and_says_so(self, make: Make) -> None:
        desk = make(found=Mark(0, 0, alone=False))
        desk.part.offer([a_record(0, tenant="red")])
        assert desk.part.has_suspect(desk.now)
        assert not desk.part.has_suspect(desk.now, {"red"})

    def test_one_that_had_company_is_not_blamed_but_handled_with_none(self, make: Make) -> None:
        desk = make(found=Mark(0, 0, alone=True, accompanied=True))
        desk.offer(0)
        assert desk.begin() == [0]
        assert desk.mark.is_exclusive

    @pytest.mark.parametrize("first", [0, 1])
    def test_the_one_that_was_alone_is_not_handed_over_again(self, make: Make, first: int) -> None:
        desk = make(found=Mark(1, 1, alone=True))
        desk.offer(*range(first, 3))
        handed_over = desk.go_round()
        killer = desk.part.take_killer()
        assert killer is not None
        assert killer.record.offset == 1
        handed_over += desk.go_round() + desk.go_round()
        assert handed_over == [offset for offset in range(first, 3) if offset != 1]
        assert desk.part.is_idle

    def test_until_that_one_is_taken_its_mark_is_not_replaced(self, make: Make) -> None:
        desk = make(found=Mark(0, 0, alone=True))
        desk.offer(0, 1)
        assert desk.begin() == []
        assert desk.mark.mark is None, "what was found stays as it is"
        assert desk.part.take_killer() is not None
        assert desk.begin() == [1]

    def test_one_that_only_waits_to_be_tried_again_is_not_blamed(self, make: Make) -> None:
        desk = make(found=Mark(0, 1, alone=False))
        desk.offer(0, 1)
        desk.go_round(0)
        assert desk.mark.mark is None, "it is with nobody"

    def test_nor_is_one_that_follows_a_handler_that_still_runs(self, make: Make) -> None:
        desk = make(found=Mark(0, 1, alone=False), processing=NO_RETRY)
        desk.offer(0, 1)
        desk.begin()
        run = desk.overrun()
        desk.part.conclude(desk.now)
        assert desk.begin() == []
        assert desk.mark.mark == Mark(0, 0, alone=True)
        run.is_over = True
        assert desk.begin() == [1]

    def test_who_gives_the_partition_away_leaves_no_mark(self, make: Make) -> None:
        desk = make()
        desk.offer(0)
        desk.begin()
        desk.part.close()
        assert (desk.mark.mark, desk.mark.is_closed) == (None, True)
