"""Threads and tasks that run handlers: as many as wanted, replaced when left behind, gone when stopped."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from queuecore.consuming.async_pool import AsyncPool
from queuecore.consuming.attempt import Attempt
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.delivering import is_async
from queuecore.consuming.pool import Pool, ThreadPool
from queuecore.consuming.work import Outcome
from queuecore.messages import Record
from queuecore.testing.waiting import wait_until
from tests.unit.queuecore.consuming_kit import an_attempt, deliverer, works

NAME = "pool-of-a-test"


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith(NAME)]


class Hall:
    """Handlers that wait until they are let go, each by the offset of its message."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.cancelled: list[int] = []
        self._free: dict[int, threading.Event] = {}
        self._lock = threading.Lock()
        self._is_open = threading.Event()

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        self.seen.append(record.offset)
        event = self._event(record.offset)
        wait_until(lambda: event.is_set() or self._is_open.is_set())

    async def later(self, record: Record, context: DeliveryContext) -> None:
        self.seen.append(record.offset)
        event = self._event(record.offset)
        try:
            while not event.is_set() and not self._is_open.is_set():
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.cancelled.append(record.offset)
            raise

    async def stubborn(self, record: Record, context: DeliveryContext) -> None:
        """Goes on when it is cancelled."""
        while not self._event(record.offset).is_set() and not self._is_open.is_set():
            try:
                await self.later(record, context)
            except asyncio.CancelledError:
                continue

    def let_go(self, *offsets: int) -> None:
        for offset in offsets:
            self._event(offset).set()

    def open(self) -> None:
        self._is_open.set()

    def _event(self, offset: int) -> threading.Event:
        with self._lock:
            return self._free.setdefault(offset, threading.Event())


MakePool = Callable[..., Any]


@pytest.fixture
def hall() -> Iterator[Hall]:
    hall = Hall()
    yield hall
    hall.open()


@pytest.fixture
def pool_of(hall: Hall) -> Iterator[MakePool]:
    with ExitStack() as stack:

        def make(handler: Any, concurrency: int = 2, max_overruns: int = 2) -> Pool:
            kind = AsyncPool if is_async(handler) else ThreadPool
            pool = kind(NAME, deliverer(handler), concurrency, max_overruns, lambda: None)
            stack.callback(lambda: wait_until(lambda: not threads()))
            stack.callback(pool.stop)
            stack.callback(hall.open)
            return pool

        yield make


def alone(*offsets: int) -> Attempt:
    """Each in a lane of its own."""
    return an_attempt(*[works(offset) for offset in offsets])


def leave_behind(pool: Pool, attempt: Attempt) -> None:
    """Every run whose message is under way."""
    for _, run in attempt.expire(float("inf"), 1.0, cancel=True):
        pool.replace(run)


BOTH = pytest.mark.parametrize("handler", ["__call__", "later"], ids=["threads", "tasks"])


class TestBoth:
    @BOTH
    def test_as_many_work_as_there_may(self, pool_of: MakePool, hall: Hall, handler: str) -> None:
        pool, attempt = pool_of(getattr(hall, handler)), alone(0, 1, 2)
        pool.submit(attempt)
        wait_until(lambda: hall.seen)
        pool.help(attempt)
        wait_until(lambda: len(hall.seen) == 2)
        assert attempt.waiting_lanes == 1
        hall.let_go(0)
        wait_until(lambda: sorted(hall.seen) == [0, 1, 2])
        hall.open()
        wait_until(lambda: attempt.is_over)
        assert attempt.is_complete

    @BOTH
    def test_one_that_is_left_behind_is_replaced(self, pool_of: MakePool, hall: Hall, handler: str) -> None:
        pool, attempt = pool_of(getattr(hall, handler), concurrency=1), alone(0, 1)
        pool.submit(attempt)
        wait_until(lambda: hall.seen == [0])
        leave_behind(pool, attempt)
        pool.help(attempt)
        wait_until(lambda: hall.seen == [0, 1])
        hall.let_go(1)
        wait_until(lambda: attempt.is_over)
        assert [work.outcome for work in attempt._ended] == [Outcome.TIMED_OUT, Outcome.SUCCEEDED]
        hall.let_go(0)
        wait_until(lambda: pool.overruns == 0)
        assert [work.outcome for work in attempt._ended] == [Outcome.TIMED_OUT, Outcome.SUCCEEDED], "it came too late"

    @pytest.mark.parametrize("handler", ["__call__", "stubborn"], ids=["threads", "tasks"])
    def test_what_has_waited_for_a_place_gets_the_one_that_is_free_again(
        self, pool_of: MakePool, hall: Hall, handler: str
    ) -> None:
        pool, stuck, waiting = pool_of(getattr(hall, handler), concurrency=1), alone(0), alone(1)
        pool.submit(stuck)
        wait_until(lambda: hall.seen)
        pool.submit(waiting)
        leave_behind(pool, stuck)
        wait_until(lambda: 1 in hall.seen)

    @pytest.mark.parametrize("handler", ["__call__", "stubborn"], ids=["threads", "tasks"])
    def test_so_many_may_be_left_behind_and_no_more(self, pool_of: MakePool, hall: Hall, handler: str) -> None:
        pool, attempt = pool_of(getattr(hall, handler), concurrency=1, max_overruns=2), alone(0, 1, 2, 3)
        for number in range(3):
            pool.submit(attempt)
            wait_until(lambda number=number: {*hall.seen} == {*range(number + 1)})
            assert not pool.is_stuck
            leave_behind(pool, attempt)
            assert pool.overruns == number + 1
        assert pool.is_stuck
        pool.submit(attempt)
        hall.let_go(0)
        wait_until(lambda: 3 in hall.seen)
        assert not pool.is_stuck

    @BOTH
    def test_its_size_can_change(self, pool_of: MakePool, hall: Hall, handler: str) -> None:
        pool, attempt = pool_of(getattr(hall, handler), concurrency=1), alone(0, 1, 2, 3)
        pool.submit(attempt)
        wait_until(lambda: hall.seen == [0])
        pool.resize(3, 1)
        pool.help(attempt)
        wait_until(lambda: sorted(hall.seen) == [0, 1, 2])
        pool.resize(1, 1)
        hall.open()
        wait_until(lambda: attempt.is_over)
        wait_until(lambda: len(threads()) == 1)

    @BOTH
    def test_a_defect_of_ours_is_told(
        self, pool_of: MakePool, hall: Hall, handler: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def be_broken(*_: object) -> None:
            raise RuntimeError("a defect")

        monkeypatch.setattr("queuecore.consuming.delivering.OpenDelivery", be_broken)
        pool = pool_of(getattr(hall, handler))
        pool.submit(alone(0))
        wait_until(lambda: pool.error)
        assert str(pool.error) == "a defect"

    @BOTH
    def test_a_handler_knows_that_it_is_one(self, pool_of: MakePool, handler: str) -> None:
        found: list[bool] = []

        def here(record: Record, context: DeliveryContext) -> None:
            found.append(pool.is_this_thread)

        async def there(record: Record, context: DeliveryContext) -> None:
            found.append(pool.is_this_thread)

        pool = pool_of(here if handler == "__call__" else there)
        pool.submit(alone(0))
        wait_until(lambda: found)
        assert found == [True]
        assert not pool.is_this_thread

    @BOTH
    def test_who_never_worked_has_no_threads(self, pool_of: MakePool, hall: Hall, handler: str) -> None:
        pool = pool_of(getattr(hall, handler))
        assert threads() == []
        pool.stop()


class TestThreads:
    def test_they_end_when_it_is_stopped(self, pool_of: MakePool, hall: Hall) -> None:
        pool, attempt = pool_of(hall), alone(0, 1)
        pool.submit(attempt)
        wait_until(lambda: hall.seen)
        pool.stop()
        hall.open()
        wait_until(lambda: not threads())
        pool.submit(alone(2))
        assert 2 not in hall.seen
        assert threads() == []

    def test_a_handler_that_asks_for_the_end_of_its_thread_has_failed(self, pool_of: MakePool) -> None:
        def leave(record: Record, context: DeliveryContext) -> None:
            raise SystemExit

        pool, attempt = pool_of(leave), alone(0, 1)
        pool.submit(attempt)
        wait_until(lambda: attempt.is_over)
        assert {work.outcome for work in attempt._ended} == {Outcome.FAILED}
        assert pool.error is None


class TestTasks:
    def test_one_whose_time_is_up_is_cancelled(self, pool_of: MakePool, hall: Hall) -> None:
        pool, attempt = pool_of(hall.later), alone(0)
        pool.submit(attempt)
        wait_until(lambda: hall.seen)
        leave_behind(pool, attempt)
        wait_until(lambda: hall.cancelled == [0])
        wait_until(lambda: pool.overruns == 0)

    def test_one_that_does_not_let_go_stays_among_those_left_behind(self, pool_of: MakePool, hall: Hall) -> None:
        pool, attempt = pool_of(hall.stubborn), alone(0)
        pool.submit(attempt)
        wait_until(lambda: hall.seen)
        leave_behind(pool, attempt)
        wait_until(lambda: hall.cancelled == [0])
        assert pool.overruns == 1
        hall.open()
        wait_until(lambda: pool.overruns == 0)

    def test_what_is_under_way_is_cancelled_when_it_is_stopped(self, pool_of: MakePool, hall: Hall) -> None:
        pool, attempt = pool_of(hall.later), alone(0, 1)
        pool.submit(attempt)
        pool.help(attempt)
        wait_until(lambda: len(hall.seen) == 2)
        attempt.close()
        pool.stop()
        wait_until(lambda: not threads())
        assert sorted(hall.cancelled) == [0, 1]

    def test_one_thread_is_enough_for_many(self, pool_of: MakePool, hall: Hall) -> None:
        pool, attempt = pool_of(hall.later, concurrency=100), alone(*range(100))
        pool.submit(attempt)
        wait_until(lambda: len(hall.seen) == 100)
        assert len(threads()) == 1
        hall.open()
        wait_until(lambda: attempt.is_complete)

    def test_a_handler_may_fail_or_decide_not_to_wait(self, pool_of: MakePool) -> None:
        async def handle(record: Record, context: DeliveryContext) -> None:
            if record.offset == 0:
                raise ValueError("no")

        pool, attempt = pool_of(handle), alone(0, 1)
        pool.submit(attempt)
        wait_until(lambda: attempt.is_over)
        outcomes = {work.record.offset: work.outcome for work in attempt._ended}
        assert outcomes == {0: Outcome.FAILED, 1: Outcome.SUCCEEDED}
