"""What flows and what does not: partitions do not stop each other, and no more is read than can be held."""

import asyncio
import threading
from collections import Counter

import pytest

from queuecore.consuming.context import DeliveryContext
from queuecore.messages import Record
from queuecore.processing import ProcessingStrategy, processing_strategy
from queuecore.providers.memory.consumer import MemoryConsumer
from queuecore.testing.waiting import wait_until
from tests.unit.queuecore.consuming_kit import BY_ORIGINATOR, LONG_PAUSE, NO_RETRY, SEQUENTIAL, Bench, Gate

SKIP = processing_strategy("SKIP_ALL_FAILURES_AND_TIMED_OUT")


def fail_first(record: Record, context: DeliveryContext) -> None:
    if record.data == b"bad":
        raise ValueError("no")


class TestPartitions:
    def test_a_long_handler_does_not_stop_another_partition(self, wide_bench: Bench) -> None:
        gate = Gate("slow")
        wide_bench.send("slow", *map(str, range(50)), partition=0)
        consumption = wide_bench.consume(gate, submit=SEQUENTIAL, pack_size=5, max_open=5)
        wait_until(lambda: gate.seen)
        for round_number in range(3):
            wide_bench.send(*map(str, range(20)), partition=1)
            wide_bench.wait_for_commit(20 * (round_number + 1), partition=1)
        assert wide_bench.committed(0) is None
        assert consumption.counts.polled < 110, "what cannot be held is not read"
        gate.open()
        wide_bench.wait_for_commit(51, partition=0)

    def test_a_pause_before_a_retry_does_not_either(self, wide_bench: Bench) -> None:
        wide_bench.send("bad", *map(str, range(50)), partition=0)
        consumption = wide_bench.consume(fail_first, submit=SEQUENTIAL, processing=LONG_PAUSE, pack_size=5, max_open=5)
        wait_until(lambda: consumption.counts.tmp_failed)
        for round_number in range(3):
            wide_bench.send(*map(str, range(20)), partition=1)
            wide_bench.wait_for_commit(20 * (round_number + 1), partition=1)
        assert wide_bench.committed(0) is None

    @pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])
    @pytest.mark.parametrize("processing", [SKIP, NO_RETRY], ids=["told", "not told"])
    def test_nor_does_a_handler_that_never_returns_where_it_has_the_only_thread(
        self, wide_bench: Bench, processing: ProcessingStrategy, is_async: bool
    ) -> None:
        """Once its time is up."""
        gate = Gate("stuck")

        async def later(record: Record, context: DeliveryContext) -> None:
            while record.data == b"stuck" and not gate._open.is_set():
                await asyncio.sleep(0.001)

        wide_bench.send("stuck", partition=0)
        wide_bench.send("a", partition=1)
        wide_bench.consume(later if is_async else gate, concurrency=1, processing=processing, timeout_ms=250)
        wide_bench.wait_for_commit(1, partition=1)
        wide_bench.wait_for_commit(1, partition=0)
        gate.open()

    def test_a_lane_that_waits_does_not_stop_the_others_of_its_partition(self, bench: Bench) -> None:
        handled: Counter[str] = Counter()
        lock = threading.Lock()

        def handle(record: Record, context: DeliveryContext) -> None:
            with lock:
                handled[record.data.decode()] += 1
            fail_first(record, context)

        bench.send("bad", "behind", key="a")
        consumption = bench.consume(handle, submit=BY_ORIGINATOR, processing=LONG_PAUSE)
        wait_until(lambda: consumption.counts.tmp_failed)
        for number in range(50):
            bench.send(str(number), key="b")
        wait_until(lambda: consumption.counts.handled == 50)
        assert handled["behind"] == 0
        assert bench.committed() is None


class TestRoom:
    def test_no_more_is_read_than_can_be_held(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("slow", *map(str, range(200)))
        consumption = bench.consume(gate, submit=SEQUENTIAL, pack_size=10, max_open=20)
        wait_until(lambda: gate.seen)
        wait_until(lambda: consumption.budget.back_pressure > 0)
        assert consumption.counts.polled <= 1 + 3 * 10 + 10
        gate.open()
        bench.wait_for_commit(201)

    def test_nor_more_bytes(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("slow")
        consumption = bench.consume(gate, submit=SEQUENTIAL, max_open_bytes=1_000, pack_size=10, max_open=100)
        wait_until(lambda: gate.seen)
        bench.send(*["x" * 600] * 30)
        wait_until(lambda: consumption.budget.back_pressure > 0)
        # One of them that came alone leaves room for a pack.
        assert consumption.counts.polled <= 2 + 10
        gate.open()
        bench.wait_for_commit(31)

    def test_what_is_read_ahead_does_not_hold_up_itself(self, bench: Bench) -> None:
        """One message waits to be tried again, and more is at hand than may be open."""
        bench.send("bad", *["x" * 600] * 30)
        consumption = bench.consume(fail_first, processing=LONG_PAUSE, max_open_bytes=1_000, pack_size=10, max_open=100)
        wait_until(lambda: consumption.counts.handled == 30)
        assert bench.committed() is None

    def test_who_waits_for_a_handler_that_overran_does_not_look_all_the_time(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its message is due again, and its lane waits for it: that is no reason not to wait for others."""
        polls: list[int] = []
        poll = MemoryConsumer.poll
        monkeypatch.setattr(MemoryConsumer, "poll", lambda self, ms: (polls.append(ms), poll(self, ms))[1])
        gate = Gate("slow")
        bench.send("slow", key="a")
        retry = processing_strategy("RETRY_TIMED_OUT", pause_ms=1)
        consumption = bench.consume(
            gate, submit=BY_ORIGINATOR, processing=retry, timeout_ms=250, overrun_limit_ms=3_600_000
        )
        wait_until(lambda: consumption.counts.tmp_timed_out == 1)
        before = len(polls)
        wait_until(lambda: len(polls) > before + 5)
        assert polls[-3:] == [10, 10, 10]
        gate.open()
        bench.wait_for_commit(1)
