"""What is counted, where the time goes, and what is told of a partition that stands still."""

from dataclasses import fields

import pytest

from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.counting import (
    MOST_TENANTS,
    OTHER_TENANTS,
    ConsumptionCounts,
    Counter,
    Stopwatch,
    TimeBudget,
)
from queuecore.consuming.holds import NO_HOLDS, Holds
from queuecore.consuming.observing import Unobserved
from queuecore.consuming.partition import PartitionWork
from queuecore.consuming.stalls import LOOK_EVERY_S, StallDetector
from queuecore.consuming.work import Work
from queuecore.errors import ProviderUnavailable
from queuecore.messages import QueueMessage, Record
from queuecore.processing import Verdict, processing_strategy
from queuecore.providers.base import TopicSpec
from queuecore.sending import Addressed
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import wait_until
from queuecore.topics import TopicPartitionInfo
from tests.unit.queuecore.consuming_kit import AT_ONCE, INFO, NO_RETRY, SEQUENTIAL, Bench, Gate, a_plan, a_record

PATIENCE_S = 60.0


def fail_bad(record: Record, context: object) -> None:
    if record.data.startswith(b"bad"):
        raise ValueError("no")


class TestCounts:
    def test_they_have_the_names_of_the_original(self, bench: Bench) -> None:
        bench.send("bad", "good")
        consumption = bench.consume(fail_bad, submit=SEQUENTIAL, processing=AT_ONCE)
        bench.wait_for_commit(2)
        wait_until(lambda: consumption.counts.handled == 1)
        assert consumption.counts.original() == {
            "totalMsgs": 4,
            "successfulMsgs": 1,
            "tmpTimeout": 0,
            "tmpFailed": 2,
            "timeoutMsgs": 0,
            "failedMsgs": 1,
            "successfulIterations": 0,
            "failedIterations": 3,
            "queue.producer.sent": 0,
            "queue.consumer.polled": 2,
            "queue.processing.time": consumption.counts.processing_us // 1000,
            "queue.errors": 3,
        }
        assert consumption.counts.processing_us > 0

    def test_what_handlers_send_is_counted_once_it_is_stored(self, bench: Bench) -> None:
        class ToOutput:
            def compose(self, queue: str, entity: object, payload: bytes, headers: object = None) -> Addressed:
                return Addressed(TopicPartitionInfo(queue), QueueMessage(None, payload))

        def forward(record: Record, context: DeliveryContext) -> None:
            context.send("out", None, record.data)
            fail_bad(record, context)

        bench.provider.admin().create_topics([TopicSpec("out")])
        bench.send("bad", "good", "better")
        consumption = bench.consume(forward, processing=NO_RETRY, composer=ToOutput())
        wait_until(lambda: consumption.counts.handled == 2)
        assert consumption.counts.sent == 2

    def test_every_message_is_counted_by_what_became_of_it(self, bench: Bench) -> None:
        bench.send("bad", "good", "better")
        consumption = bench.consume(fail_bad, processing=NO_RETRY)
        bench.wait_for_commit(3)
        wait_until(lambda: consumption.counts.handled == 2)
        counts = consumption.counts
        assert (counts.polled, counts.total, counts.succeeded, counts.failed) == (3, 3, 2, 1)
        assert (counts.dead_lettered, counts.dropped, counts.retried) == (1, 0, 0)
        assert counts.polled == counts.handled + counts.dead_lettered + counts.passed_over + counts.dropped

    def test_what_is_tried_again_with_its_pack_is_counted_each_time(self, bench: Bench) -> None:
        seen: list[bytes] = []

        def fail_once(record: Record, context: object) -> None:
            seen.append(record.data)
            if record.data == b"b" and seen.count(b"b") == 1:
                raise ValueError("no")

        bench.send("a", "b")
        again = processing_strategy("RETRY_ALL", pause_ms=0)
        consumption = bench.consume(fail_once, processing=again)
        bench.wait_for_commit(2)
        wait_until(lambda: consumption.counts.handled == 2)
        counts = consumption.counts
        assert (counts.total, counts.succeeded, counts.tmp_failed) == (4, 3, 1)
        assert (counts.successful_iterations, counts.failed_iterations) == (1, 1)

    def test_each_tenants_are_known(self, bench: Bench) -> None:
        bench.send("bad", "good", tenant="red")
        bench.send("good", tenant="blue")
        bench.send("good")
        consumption = bench.consume(fail_bad, processing=NO_RETRY)
        bench.wait_for_commit(4)
        wait_until(lambda: consumption.counts.handled == 3)
        by_tenant = consumption.counts_by_tenant
        assert {tenant: (one.total, one.failed) for tenant, one in by_tenant.items()} == {
            "red": (2, 1),
            "blue": (1, 0),
            "": (1, 0),
        }

    def test_those_of_more_tenants_than_can_be_kept_are_counted_together(self) -> None:
        counter = Counter()
        for number in range(MOST_TENANTS + 10):
            counter.attempt({b"tenant-%d" % number: 1}, Verdict())
        by_tenant = counter.by_tenant()
        assert len(by_tenant) == MOST_TENANTS + 1
        assert by_tenant[OTHER_TENANTS].succeeded == 10
        assert counter.counts().succeeded == MOST_TENANTS + 10

    def test_an_attempt_in_which_nothing_was_submitted_does_not_count(self) -> None:
        counter = Counter()
        counter.attempt({}, Verdict())
        assert counter.counts() == ConsumptionCounts()

    def test_each_is_described(self) -> None:
        doc = ConsumptionCounts.__doc__ or ""
        assert [one.name for one in fields(ConsumptionCounts) if f"    {one.name} " not in doc] == []


class TestFailurePercentage:
    @pytest.mark.parametrize(
        ("percentage", "bad", "reason"),
        [(50, 3, "failure_percentage"), (50, 2, ""), (0, 4, ""), (100, 4, ""), (74, 3, "failure_percentage")],
    )
    def test_where_more_fail_they_are_given_up_at_once(
        self, bench: Bench, percentage: int, bad: int, reason: str
    ) -> None:
        bench.send(*[f"bad{number}" for number in range(bad)], *["good"] * (4 - bad))
        strategy = processing_strategy(
            "RETRY_FAILED", failure_percentage=percentage, pause_ms=3_600_000, max_pause_ms=3_600_000
        )
        consumption = bench.consume(fail_bad, processing=strategy)
        wait_until(lambda: consumption.counts.handled == 4 - bad)
        wait_until(lambda: consumption.counts.failed + consumption.counts.tmp_failed == bad)
        if reason:
            bench.wait_for_commit(4)
        assert {story.reason for story in bench.stories().values()} == ({reason} if reason else set())
        assert consumption.counts.tmp_failed == (0 if reason else bad)


class TestTheTime:
    def test_it_adds_up(self) -> None:
        clock = ManualClock()
        watch = Stopwatch(clock)
        for seconds, activity in (
            (1.0, "poll"),
            (2.0, "process"),
            (4.0, "back_pressure"),
            (8.0, "commit"),
            (1.0, "poll"),
        ):
            clock.advance(seconds)
            watch.spent_on(activity)  # type: ignore[arg-type]
        assert watch.budget == TimeBudget(poll=2.0, process=2.0, back_pressure=4.0, commit=8.0)

    def test_a_consumption_says_what_its_went_to(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("slow")
        consumption = bench.consume(gate)
        wait_until(lambda: gate.seen)
        wait_until(lambda: consumption.budget.process > 0)
        gate.open()
        bench.wait_for_commit(1)
        wait_until(lambda: consumption.budget.commit > 0)
        assert consumption.budget.poll > 0


class Told(Unobserved):
    def __init__(self) -> None:
        self.stalls: list[str] = []

    def stalled(self, info: TopicPartitionInfo, reason: str) -> None:
        self.stalls.append(reason)

    def recovered(self, info: TopicPartitionInfo) -> None:
        self.stalls.append("recovered")


class TestStalls:
    @pytest.fixture
    def told(self) -> Told:
        return Told()

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def part(self, clock: ManualClock) -> PartitionWork:
        return PartitionWork(INFO, a_plan(), clock, lambda: None)

    @pytest.fixture
    def detector(self, told: Told, bench: Bench, part: PartitionWork) -> StallDetector:
        detector = StallDetector(bench.provider, told, PATIENCE_S)
        detector.look([part], NO_HOLDS, 0.0)
        return detector

    def test_one_that_has_messages_and_finishes_none_is_told_once(
        self, detector: StallDetector, part: PartitionWork, told: Told
    ) -> None:
        part.offer([a_record(0)])
        detector.look([part], NO_HOLDS, 1.0)
        detector.look([part], NO_HOLDS, PATIENCE_S)
        assert told.stalls == []
        for now in (PATIENCE_S + 1, PATIENCE_S + 10):
            detector.look([part], NO_HOLDS, now)
        assert told.stalls == ["in.0 has finished nothing for 60 s, and messages that were read wait"]

    def test_the_time_when_it_had_none_does_not_count(
        self, detector: StallDetector, part: PartitionWork, told: Told
    ) -> None:
        detector.look([part], NO_HOLDS, PATIENCE_S - 1)
        part.offer([a_record(0)])
        detector.look([part], NO_HOLDS, PATIENCE_S + 1)
        detector.look([part], NO_HOLDS, 2 * PATIENCE_S)
        assert told.stalls == []

    def test_so_is_its_recovery(self, detector: StallDetector, part: PartitionWork, told: Told) -> None:
        part.offer([a_record(0), a_record(1)])
        detector.look([part], NO_HOLDS, 1.0)
        detector.look([part], NO_HOLDS, PATIENCE_S + 1)
        part.finish([Work(a_record(0), None)])
        for now in (PATIENCE_S + 2, PATIENCE_S + 3):
            detector.look([part], NO_HOLDS, now)
        assert told.stalls[1:] == ["recovered"]
        detector.look([part], NO_HOLDS, 3 * PATIENCE_S)
        assert len(told.stalls) == 3, "it may stall again"

    def test_one_that_has_nothing_to_do_is_not(self, detector: StallDetector, part: PartitionWork, told: Told) -> None:
        detector.look([part], NO_HOLDS, 10 * PATIENCE_S)
        assert told.stalls == []

    def test_one_that_reads_nothing_although_there_is_something_is(
        self, detector: StallDetector, part: PartitionWork, told: Told, bench: Bench
    ) -> None:
        bench.send("a")
        for now in (PATIENCE_S, 2 * PATIENCE_S - 1):
            detector.look([part], NO_HOLDS, now)
        assert told.stalls == [], "it may have come just now"
        detector.look([part], NO_HOLDS, 2 * PATIENCE_S)
        assert told.stalls == ["in.0 has finished nothing for 120 s, and messages wait to be read"]

    def test_what_cannot_be_read_is_nothing_to_read(
        self, detector: StallDetector, part: PartitionWork, told: Told, bench: Bench
    ) -> None:
        """A transaction leaves an offset behind even where it was aborted."""
        with bench.provider.transactional_producer("t").begin() as transaction:
            transaction.send(INFO, QueueMessage(None, b"x"))
            transaction.abort()
        for now in (PATIENCE_S, 2 * PATIENCE_S, 3 * PATIENCE_S):
            detector.look([part], NO_HOLDS, now)
        assert told.stalls == []

    def test_one_that_an_operator_paused_is_not(self, detector: StallDetector, part: PartitionWork, told: Told) -> None:
        part.offer([a_record(0)])
        detector.look([part], Holds(partitions=frozenset({INFO.partition or 0})), PATIENCE_S)
        detector.look([part], Holds(partitions=frozenset({INFO.partition or 0})), 2 * PATIENCE_S)
        assert told.stalls == []
        detector.look([part], NO_HOLDS, 2.5 * PATIENCE_S)
        assert told.stalls == [], "its time begins anew"

    def test_nor_one_whose_next_message_is_of_a_tenant_that_is_paused(
        self, detector: StallDetector, part: PartitionWork, told: Told
    ) -> None:
        part.offer([a_record(0, tenant="red"), a_record(1, tenant="blue")])
        for now in (1.0, PATIENCE_S + 1, 2 * PATIENCE_S + 1):
            detector.look([part], Holds(tenants=frozenset({"red"})), now)
        assert told.stalls == []

    def test_nor_one_that_stands_still_for_a_reason_that_is_known(
        self, detector: StallDetector, part: PartitionWork, told: Told
    ) -> None:
        part.offer([a_record(0)])
        part.paused = "too many dead letters"
        detector.look([part], NO_HOLDS, 2 * PATIENCE_S)
        assert told.stalls == []

    def test_one_that_is_given_away_is_forgotten(
        self, detector: StallDetector, part: PartitionWork, told: Told
    ) -> None:
        part.offer([a_record(0)])
        detector.look([part], NO_HOLDS, 1.0)
        detector.forget(INFO.place)
        detector.look([part], NO_HOLDS, PATIENCE_S + 1)
        assert told.stalls == []

    def test_and_stalled_no_longer(self, detector: StallDetector, part: PartitionWork, told: Told) -> None:
        part.offer([a_record(0)])
        for now in (1.0, PATIENCE_S + 1):
            detector.look([part], NO_HOLDS, now)
        detector.forget(INFO.place)
        assert told.stalls[1:] == ["recovered"]

    def test_it_looks_seldom(self, part: PartitionWork, told: Told, bench: Bench) -> None:
        looks: list[float] = []

        class Watched(StallDetector):
            def _goes_on(self, part: PartitionWork, look: object, now: float) -> None:
                looks.append(now)

        detector = Watched(bench.provider, told, PATIENCE_S)
        part.paused = "so that it is looked at each time"
        for now in (0.0, LOOK_EVERY_S / 2, LOOK_EVERY_S, LOOK_EVERY_S * 1.5):
            detector.look([part], NO_HOLDS, now)
        assert looks == [0.0, LOOK_EVERY_S]

    def test_a_provider_that_does_not_answer_is_no_stall(self, part: PartitionWork, told: Told) -> None:
        class Silent:
            def admin(self) -> None:
                raise ProviderUnavailable("away")

        detector = StallDetector(Silent(), told, PATIENCE_S)  # type: ignore[arg-type]
        detector.look([part], NO_HOLDS, 0.0)
        detector.look([part], NO_HOLDS, PATIENCE_S)
        assert told.stalls == []

    def test_a_consumption_tells_its_observer(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("queuecore.consuming.consumption._STALLED_AFTER_S", 0.1)
        monkeypatch.setattr("queuecore.consuming.stalls.LOOK_EVERY_S", 0.01)
        gate, told = Gate("slow"), Told()
        bench.consume(gate, observer=told)
        bench.send("slow")
        wait_until(lambda: len(told.stalls) == 1)
        gate.open()
        wait_until(lambda: told.stalls[1:] == ["recovered"])
