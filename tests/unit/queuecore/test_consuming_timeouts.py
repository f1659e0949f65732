"""Handlers that take too long, and those that want their message later."""

import asyncio
import threading
import time

import pytest

from queuecore.consuming.context import DeliveryContext
from queuecore.errors import HandlersStuck
from queuecore.messages import Record
from queuecore.processing import ProcessingStrategy, processing_strategy
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.unit.queuecore.consuming_kit import BY_ORIGINATOR, SEQUENTIAL, Bench, Gate

SKIP = processing_strategy("SKIP_ALL_FAILURES_AND_TIMED_OUT")
RETRY = processing_strategy("RETRY_TIMED_OUT", pause_ms=0)
SHORT_MS = 250


class TestTheDeadline:
    def test_a_handler_knows_how_much_time_is_left(self, bench: Bench) -> None:
        found: list[tuple[float | None, float | None]] = []
        bench.send("a")
        before = time.monotonic()
        bench.consume(lambda record, context: found.append((context.deadline, context.remaining_s)), timeout_ms=60_000)
        wait_until(lambda: found)
        [(deadline, remaining_s)] = found
        assert deadline is not None
        assert remaining_s is not None
        assert before + 60 <= deadline <= time.monotonic() + 60
        assert 0 < remaining_s <= 60

    def test_or_that_it_may_take_for_ever(self, bench: Bench) -> None:
        found: list[tuple[float | None, float | None]] = []
        bench.send("a")
        bench.consume(lambda record, context: found.append((context.deadline, context.remaining_s)), timeout_ms=None)
        wait_until(lambda: found)
        assert found == [(None, None)]


class TestOverruns:
    def test_one_that_takes_too_long_is_given_up_and_told(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("slow", "next")
        consumption = bench.consume(gate, processing=SKIP, timeout_ms=SHORT_MS)
        bench.wait_for_commit(2)
        assert gate.contexts[0].cancelled
        assert gate.contexts[0].remaining_s == 0
        story = bench.stories()["slow"]
        assert (story.reason, story.exception_class) == ("timed_out", "TimeoutError")
        assert story.exception_message == "the handler did not return within 0.25 s"
        assert (consumption.counts.timed_out, consumption.counts.overruns) == (1, 1)
        gate.open()

    def test_one_that_may_go_on_by_itself_is_not(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("slow")
        bench.consume(gate, processing=processing_strategy("SKIP_ALL_FAILURES"), timeout_ms=SHORT_MS)
        bench.wait_for_commit(1)
        assert not gate.contexts[0].cancelled
        gate.open()

    def test_its_late_outcome_is_ignored(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("slow")
        consumption = bench.consume(gate, processing=SKIP, timeout_ms=SHORT_MS)
        bench.wait_for_commit(1)
        gate.open()
        wait_until(lambda: gate.returned == ["slow"])
        wait_until(lambda: consumption._pool.overruns == 0)
        bench.send("next")
        bench.wait_for_commit(2)
        assert (consumption.counts.handled, consumption.counts.dead_lettered) == (1, 1)

    def test_it_is_tried_again_where_the_strategy_says_so(self, bench: Bench) -> None:
        deliveries: list[int] = []

        def slow_at_first(record: Record, context: DeliveryContext) -> None:
            deliveries.append(context.attempt)
            if context.attempt == 1:
                wait_until(lambda: context.cancelled)

        bench.send("a")
        consumption = bench.consume(slow_at_first, processing=RETRY, timeout_ms=SHORT_MS)
        bench.wait_for_commit(1)
        assert deliveries == [1, 2]
        assert (consumption.counts.tmp_timed_out, consumption.counts.succeeded) == (1, 1)

    def test_what_follows_it_in_its_lane_waits_until_it_is_over_and_others_do_not(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("slow", "behind", key="a")
        bench.send("beside", key="b")
        consumption = bench.consume(
            gate, submit=BY_ORIGINATOR, processing=SKIP, timeout_ms=SHORT_MS, overrun_limit_ms=3_600_000
        )
        wait_until(lambda: consumption.counts.dead_lettered == 1)
        bench.send("later", key="b")
        wait_until(lambda: "later" in gate.returned)
        assert "behind" not in gate.seen
        gate.open()
        bench.wait_for_commit(4)
        assert gate.returned.index("slow") < gate.returned.index("behind")

    @pytest.mark.parametrize(("processing", "reason"), [(SKIP, "timed_out"), (RETRY, "stuck")])
    def test_where_it_waits_longer_than_the_limit_the_process_has_to_end_and_goes_on_behind_it(
        self, processing: ProcessingStrategy, reason: str, bench: Bench
    ) -> None:
        gate = Gate("slow")
        bench.send("slow", "behind", key="a")
        options = {"submit": BY_ORIGINATOR, "processing": processing, "timeout_ms": SHORT_MS, "overrun_limit_ms": 1}
        consumption = bench.consume(gate, **options)
        assert consumption.ended.wait(DEADLINE_S)
        assert isinstance(consumption.error, HandlersStuck)
        assert gate.seen == ["slow"], "nothing of its lane ran beside it"
        gate.open()
        another = Gate()
        bench.consume(another, **options)
        bench.wait_for_commit(2)
        assert another.seen == ["behind"]
        assert [story.reason for story in bench.stories().values()] == [reason]

    def test_when_too_many_are_left_behind_it_ends_and_loses_nothing(self, bench: Bench) -> None:
        stuck = Gate(*"abcd")
        bench.send(*"abcd")
        consumption = bench.consume(stuck, processing=SKIP, timeout_ms=SHORT_MS, concurrency=1, max_overruns=1)
        assert consumption.ended.wait(DEADLINE_S)
        assert isinstance(consumption.error, HandlersStuck)
        assert "give what they wait for a time-out" in str(consumption.error)
        stuck.open()
        free = Gate()
        bench.consume(free)
        bench.wait_for_commit(4)
        assert {*bench.stories()} | {*free.seen} == {*"abcd"}

    def test_threads_left_behind_end_when_their_handlers_return(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("slow", "next")
        consumption = bench.consume(gate, processing=SKIP, timeout_ms=SHORT_MS)
        bench.wait_for_commit(2)
        assert consumption.stop(DEADLINE_S)
        gate.open()
        wait_until(lambda: not [one for one in threading.enumerate() if one.name.startswith("in-g-")])

    def test_a_coroutine_is_cancelled(self, bench: Bench) -> None:
        cancelled: list[str] = []

        async def sleep(record: Record, context: DeliveryContext) -> None:
            if record.data == b"next":
                return
            try:
                await asyncio.sleep(DEADLINE_S)
            except asyncio.CancelledError:
                cancelled.append(record.data.decode())
                raise

        bench.send("slow", "next")
        consumption = bench.consume(sleep, submit=SEQUENTIAL, processing=SKIP, timeout_ms=SHORT_MS)
        bench.wait_for_commit(2)
        assert cancelled == ["slow"]
        assert bench.stories()["slow"].reason == "timed_out"
        assert consumption.counts.overruns == 1


class TestPostponing:
    def test_it_comes_again_and_has_not_failed(self, bench: Bench) -> None:
        seen: list[tuple[str, int]] = []

        def later(record: Record, context: DeliveryContext) -> None:
            seen.append((record.data.decode(), context.attempt))
            if record.data == b"a" and context.attempt < 6:
                context.postpone(0.0)

        bench.send("a", "b")
        strict = processing_strategy("RETRY_FAILED", retries=1, pause_ms=0)
        consumption = bench.consume(later, submit=SEQUENTIAL, processing=strict)
        bench.wait_for_commit(2)
        assert seen == [*(("a", attempt) for attempt in range(1, 7)), ("b", 1)]
        counts = consumption.counts
        assert (counts.postponed, counts.succeeded, counts.tmp_failed, counts.dead_lettered) == (5, 2, 0, 0)
        assert (counts.failed_iterations, counts.total) == (0, 7)

    def test_it_holds_back_what_is_in_sequence_with_it_and_nothing_else(self, bench: Bench) -> None:
        seen: list[str] = []

        def later(record: Record, context: DeliveryContext) -> None:
            seen.append(record.data.decode())
            if record.data == b"much later":
                context.postpone(3_600)

        bench.send("much later", "behind", key="a")
        bench.send("beside", key="b")
        bench.consume(later, submit=BY_ORIGINATOR)
        wait_until(lambda: "beside" in seen)
        bench.send("after", key="b")
        wait_until(lambda: "after" in seen)
        assert "behind" not in seen
        assert bench.committed() is None

    @pytest.mark.parametrize("seconds", [-1.0, 0.0])
    def test_there_is_no_time_before_now(self, bench: Bench, seconds: float) -> None:
        attempts: list[int] = []

        def at_once(record: Record, context: DeliveryContext) -> None:
            attempts.append(context.attempt)
            if context.attempt == 1:
                context.postpone(seconds)

        bench.send("a")
        bench.consume(at_once)
        bench.wait_for_commit(1)
        assert attempts == [1, 2]
