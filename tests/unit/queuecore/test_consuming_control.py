"""What operators do to a consumption: pause and resume, change its plan, have it give way."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.holds import NO_HOLDS, Holds
from queuecore.consuming.observing import Unobserved
from queuecore.deadletter.policy import DeadLetterPolicy, OnLimit
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError, DeadLetterLimitExceeded
from queuecore.messages import Record
from queuecore.processing import ProcessingStrategy, processing_strategy
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.unit.queuecore.consuming_kit import AT_ONCE, LONG_PAUSE, NO_RETRY, SEQUENTIAL, Bench, Gate


class TestHolds:
    def test_a_queue_that_is_paused_is_read_and_not_handled(self, bench: Bench) -> None:
        gate = Gate()
        consumption = bench.consumption(gate)
        consumption.hold(Holds(queue=True))
        consumption.start()
        bench.send("a")
        wait_until(lambda: consumption.counts.polled == 1)
        assert gate.seen == []
        consumption.hold(NO_HOLDS)
        bench.wait_for_commit(1)

    def test_what_is_under_way_ends(self, bench: Bench) -> None:
        gate = Gate("a")
        consumption = bench.consume(gate)
        bench.send("a")
        wait_until(lambda: gate.seen)
        consumption.hold(Holds(queue=True))
        gate.open()
        bench.wait_for_commit(1)
        bench.send("b")
        wait_until(lambda: consumption.counts.polled == 2)
        assert gate.seen == ["a"]

    @pytest.mark.parametrize("holds", [Holds(queue=True), Holds(tenants=frozenset({"red"}))], ids=["queue", "tenant"])
    def test_and_nothing_more_of_its_pack_is_handed_over(self, bench: Bench, holds: Holds) -> None:
        gate = Gate("a")
        bench.send("a", "b", "c", tenant="red")
        consumption = bench.consume(gate, submit=SEQUENTIAL)
        wait_until(lambda: gate.seen)
        consumption.hold(holds)
        attempt = next(iter(consumption.stay._parts.values())).attempt
        wait_until(lambda: not attempt.is_open)
        gate.open()
        bench.wait_for_commit(1)
        assert gate.seen == ["a"]
        consumption.hold(NO_HOLDS)
        bench.wait_for_commit(3)
        assert consumption.counts.retried == 0

    def test_a_partition_is_paused_alone(self, wide_bench: Bench) -> None:
        gate = Gate()
        consumption = wide_bench.consumption(gate)
        consumption.hold(Holds(partitions=frozenset({0})))
        consumption.start()
        wide_bench.send("a", partition=0)
        wide_bench.send("b", partition=1)
        wide_bench.wait_for_commit(1, partition=1)
        assert gate.seen == ["b"]
        consumption.hold(Holds(partitions=frozenset({1})))
        wide_bench.wait_for_commit(1, partition=0)

    @pytest.mark.parametrize("processing", ["SKIP_ALL_FAILURES", "RETRY_ALL"])
    def test_a_tenants_messages_wait_and_the_others_go_on(self, bench: Bench, processing: str) -> None:
        gate = Gate()
        consumption = bench.consumption(gate, processing=processing_strategy(processing), pack_size=2, max_open=100)
        consumption.hold(Holds(tenants=frozenset({"red"})))
        consumption.start()
        bench.send("r1", "r2", tenant="red")
        bench.send("b1", tenant="blue")
        bench.send("s1")
        wait_until(lambda: consumption.counts.handled == 2)
        assert sorted(gate.seen) == ["b1", "s1"]
        assert bench.committed() is None, "what is behind a message that waits is not committed"
        consumption.hold(NO_HOLDS)
        bench.wait_for_commit(4)
        assert gate.seen[2:] == ["r1", "r2"]

    def test_so_many_may_wait_and_then_the_partition_does(self, bench: Bench) -> None:
        gate = Gate()
        consumption = bench.consumption(gate, pack_size=2, max_open=2)
        consumption.hold(Holds(tenants=frozenset({"red"})))
        consumption.start()
        bench.send("r1", "r2", tenant="red")
        bench.send("b1", tenant="blue")
        wait_until(lambda: consumption.counts.polled == 3)
        wait_until(
            lambda: consumption.stay is not None and all(part.open == 2 for part in consumption.stay._parts.values())
        )
        assert gate.seen == []
        consumption.hold(NO_HOLDS)
        bench.wait_for_commit(3)

    @pytest.mark.parametrize("delivery", ["at_most_once", "exactly_once"])
    def test_where_what_follows_could_not_be_settled_it_waits_as_well(self, bench: Bench, delivery: str) -> None:
        gate = Gate()
        consumption = bench.consumption(gate, delivery=Delivery(delivery))
        consumption.hold(Holds(tenants=frozenset({"red"})))
        bench.send("b1", tenant="blue")
        bench.send("r1", tenant="red")
        bench.send("b2", tenant="blue")
        consumption.start()
        bench.wait_for_commit(1)
        wait_until(lambda: consumption.counts.polled == 3)
        assert consumption.stop(DEADLINE_S)
        assert gate.seen == ["b1"]
        assert bench.committed() == 1


class Told(Unobserved):
    def __init__(self) -> None:
        self.paused: list[str] = []

    def partition_paused(self, info: TopicPartitionInfo, reason: str) -> None:
        self.paused.append(f"{info.partition}: {reason}")


class Failing(Gate):
    """Fails with these, until it is mended."""

    def __init__(self, *data: str) -> None:
        super().__init__()
        self.bad: Sequence[str] = data

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        super().__call__(record, context)
        if record.data.decode() in self.bad:
            raise ValueError("no")


class TestTooManyLetters:
    def test_the_partition_stands_still_until_it_is_resumed(self, wide_bench: Bench) -> None:
        handler, told = Failing("bad1", "bad2", "bad3"), Told()
        consumption = wide_bench.consume(
            handler, observer=told, submit=SEQUENTIAL, processing=NO_RETRY, letters=DeadLetterPolicy(max_count=1)
        )
        wide_bench.send("bad1", "bad2", "good", "bad3", partition=0)
        wait_until(lambda: consumption.paused)
        [(info, reason)] = consumption.paused.items()
        assert info.partition == 0
        assert "had more dead letters within 60 s than its queue allows (max_count 1, max_ratio 1)" in reason
        assert told.paused == [f"0: {reason}"]
        wide_bench.send("other", partition=1)
        wide_bench.wait_for_commit(1, partition=1)
        assert consumption.is_running
        wait_until(lambda: wide_bench.committed() == 1)
        assert list(wide_bench.stories()) == ["bad1"]
        handler.bad = ()
        consumption.resume([1])
        consumption.resume([0])
        wide_bench.wait_for_commit(4)
        assert consumption.paused == {}
        assert list(wide_bench.stories()) == ["bad1"]

    def test_resumed_it_is_counted_anew(self, bench: Bench) -> None:
        told = Told()
        consumption = bench.consume(
            Failing(*"abc"),
            observer=told,
            submit=SEQUENTIAL,
            processing=NO_RETRY,
            letters=DeadLetterPolicy(max_count=1),
        )
        bench.send(*"abc")
        for number in (1, 2):
            wait_until(lambda number=number: len(told.paused) == number)
            consumption.resume()
        bench.wait_for_commit(3)
        assert list(bench.stories()) == ["a", "b", "c"]

    @pytest.mark.parametrize("processing", [NO_RETRY, AT_ONCE])
    def test_what_is_in_sequence_with_it_waits_for_the_one_too_many(
        self, bench: Bench, processing: ProcessingStrategy
    ) -> None:
        bench.send("bad1", "bad2", "good", "better")
        failing = Failing("bad1", "bad2")
        letters = DeadLetterPolicy(max_count=1)
        consumption = bench.consume(failing, submit=SEQUENTIAL, processing=processing, letters=letters)
        wait_until(lambda: consumption.paused)
        assert set(failing.seen) == {"bad1", "bad2"}
        failing.bad = ()
        consumption.resume()
        bench.wait_for_commit(4)
        assert failing.seen[-3:] == ["bad2", "good", "better"]

    def test_the_queue_halts_where_it_says_so(self, bench: Bench) -> None:
        policy = DeadLetterPolicy(max_count=1, on_limit=OnLimit.HALT)
        consumption = bench.consume(Failing(*"ab"), submit=SEQUENTIAL, processing=NO_RETRY, letters=policy)
        bench.send("a")
        bench.wait_for_commit(1)
        bench.send("b")
        assert consumption.ended.wait(DEADLINE_S)
        assert isinstance(consumption.error, DeadLetterLimitExceeded)
        assert "mend the cause, then start consuming again" in str(consumption.error)
        assert (bench.committed(), list(bench.stories())) == (1, ["a"])

    def test_or_drops_what_is_beyond_and_counts_it(self, bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
        policy = DeadLetterPolicy(max_count=1, on_limit=OnLimit.DROP)
        consumption = bench.consume(Failing(*"abc"), submit=SEQUENTIAL, processing=NO_RETRY, letters=policy)
        bench.send(*"abc", "good")
        bench.wait_for_commit(4)
        wait_until(lambda: consumption.counts.handled == 1)
        assert (consumption.counts.dead_lettered, consumption.counts.dropped) == (1, 2)
        assert "is given up and dropped, as its partition has more dead letters than its queue allows" in caplog.text

    def test_a_ratio_counts_those_that_went_well(self, bench: Bench) -> None:
        policy = DeadLetterPolicy(max_ratio=0.5, min_total=2)
        consumption = bench.consume(Failing(*"xyz"), submit=SEQUENTIAL, processing=NO_RETRY, letters=policy)
        bench.send("a", "b", "x", "y")
        bench.wait_for_commit(4)
        bench.send("z")
        wait_until(lambda: consumption.paused)
        assert list(bench.stories()) == ["x", "y"]

    def test_a_queue_without_letters_drops_and_counts(self, bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
        consumption = bench.consume(Failing("a"), processing=NO_RETRY, letters=DeadLetterPolicy(enabled=False))
        bench.send("a")
        bench.wait_for_commit(1)
        wait_until(lambda: consumption.counts.dropped == 1)
        assert bench.letters() == []
        assert "is given up (failed) and dropped, as its queue has no dead letters" in caplog.text


class TestChanging:
    def test_the_next_packs_go_by_the_new_plan(self, bench: Bench) -> None:
        handler = Failing("a", "b")
        consumption = bench.consume(handler, processing=NO_RETRY)
        bench.send("a")
        bench.wait_for_commit(1)
        assert consumption.change(bench.plan(processing=processing_strategy("RETRY_FAILED", retries=2, pause_ms=0)))
        bench.send("b")
        bench.wait_for_commit(2)
        assert handler.seen == ["a", "b", "b", "b"]
        assert {data: story.attempts for data, story in bench.stories().items()} == {"a": 1, "b": 3}
        assert consumption.is_running

    def test_a_message_that_waits_is_tried_by_the_new_plan(self, bench: Bench) -> None:
        handler = Failing("a")
        consumption = bench.consume(handler, processing=LONG_PAUSE)
        bench.send("a")
        wait_until(lambda: consumption.counts.tmp_failed == 1)
        assert consumption.change(bench.plan(processing=NO_RETRY, submit=SEQUENTIAL))
        bench.send("b")
        wait_until(lambda: consumption.plan.submit == SEQUENTIAL)
        assert bench.committed() is None, "its pause goes on"

    def test_more_are_handled_side_by_side(self, bench: Bench) -> None:
        gate = Gate(*"abcd")
        bench.send(*"abcd")
        consumption = bench.consume(gate, concurrency=1)
        wait_until(lambda: len(gate.seen) == 1)
        assert consumption.change(bench.plan(concurrency=4))
        wait_until(lambda: len(gate.seen) == 4)
        gate.open()
        bench.wait_for_commit(4)

    def test_a_handler_gets_as_much_time_as_the_new_plan_says(self, bench: Bench) -> None:
        gate = Gate()
        consumption = bench.consume(gate, timeout_ms=None)
        bench.send("a")
        bench.wait_for_commit(1)
        assert consumption.change(bench.plan(timeout_ms=1_000_000))
        bench.send("b")
        bench.wait_for_commit(2)
        assert [context.deadline is None for context in gate.contexts] == [True, False]

    @pytest.mark.parametrize(
        "changes",
        [
            {"group": "other"},
            {"member_id": "me"},
            {"delivery": "exactly_once"},
            {"state_topic": "states"},
        ],
    )
    def test_some_changes_need_a_new_one(self, bench: Bench, changes: dict[str, object]) -> None:
        consumption = bench.consumption(Gate())
        before = consumption.plan
        assert not consumption.change(replace(bench.plan(), **changes))  # type: ignore[arg-type]
        assert consumption.plan is before

    def test_a_plan_that_cannot_be_is_refused(self, bench: Bench) -> None:
        with pytest.raises(ConfigurationError, match="pack_size is 0"):
            bench.plan(pack_size=0)


class TestGivingWay:
    @pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
    def test_nothing_is_waited_for_handed_over_or_committed(self, bench: Bench, delivery: str) -> None:
        gate = Gate("slow")
        bench.send("slow", "next")
        consumption = bench.consume(gate, submit=SEQUENTIAL, delivery=delivery, hand_over_s=3_600)
        wait_until(lambda: gate.seen)
        consumption.abandon()
        assert consumption.ended.wait(DEADLINE_S)
        assert gate.contexts[0].cancelled
        gate.open()
        wait_until(lambda: gate.returned)
        assert (gate.seen, bench.committed()) == (["slow"], None)

    def test_what_was_committed_before_is_dropped_and_counted(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        gate = Gate("slow")
        bench.send("slow", "next")
        consumption = bench.consume(gate, submit=SEQUENTIAL, delivery="at_most_once", hand_over_s=3_600)
        wait_until(lambda: gate.seen)
        consumption.abandon()
        assert consumption.ended.wait(DEADLINE_S)
        gate.open()
        assert (consumption.counts.dropped, bench.committed()) == (2, 2)
        assert "2 messages were committed, and are dropped unfinished" in caplog.text

    def test_so_it_is_when_a_partition_is_given_away(self, wide_bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
        for partition in (0, 1):
            wide_bench.send("slow", "behind", partition=partition)
        gate = Gate("slow")
        options = {"delivery": Delivery.AT_MOST_ONCE, "submit": SEQUENTIAL, "hand_over_s": 0.1}
        first = wide_bench.consume(gate, **options)
        wait_until(lambda: len(gate.seen) == 2)
        second = wide_bench.consume(Gate(), **options)
        wait_until(lambda: second.partitions)
        gate.open()
        wait_until(lambda: first.counts.handled == 2)
        assert first.counts.dropped == 2
        assert "2 messages were committed, and are dropped unfinished" in caplog.text
        assert not first.stop(DEADLINE_S)

    def test_a_handler_may_do_it(self, bench: Bench) -> None:
        def give_way(record: Record, context: DeliveryContext) -> None:
            consumption.abandon()

        consumption = bench.consumption(give_way)
        consumption.start()
        bench.send("a")
        assert consumption.ended.wait(DEADLINE_S)
        assert bench.committed() is None
