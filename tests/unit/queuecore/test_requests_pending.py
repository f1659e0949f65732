"""Requests that wait: each ends once, in time, by whoever is first."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from queuecore.errors import ProviderUnavailable, QueueError, RequestCancelled, RequestTimeout
from queuecore.messages import Record
from queuecore.requests.counts import LagHistogram
from queuecore.requests.future import ResponseFuture, Wakes
from queuecore.requests.pending import PendingRequests
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until

ANSWER = Record("responses", 0, 7, 0, None, {}, b"42")


def add(pending: PendingRequests, now: float = 0.0, timeout_s: float = 60.0) -> ResponseFuture:
    future = pending.add(now, timeout_s)
    assert future is not None
    return future


def complete(pending: PendingRequests, future: ResponseFuture) -> None:
    taken = pending.take(future.request_id)
    assert taken is future
    wakes = Wakes()
    taken.complete(ANSWER, wakes)
    wakes.wake()


def test_ids_are_sixteen_bytes_of_this_life_and_never_the_same() -> None:
    pending, other = PendingRequests(100), PendingRequests(100)
    ids = [add(pending).request_id for _ in range(100)]
    assert {len(one) for one in ids} == {16}
    assert len(set(ids)) == 100
    assert all(pending.is_own(one) and not other.is_own(one) for one in ids)
    assert not pending.is_own(ids[0] + b"x")
    assert not pending.is_own(b"")


def test_the_limit_is_exact_however_many_ask_at_once() -> None:
    pending, together = PendingRequests(1_000), threading.Barrier(8)

    def ask(_: int) -> int:
        together.wait(DEADLINE_S)
        return sum(pending.add(0.0, 60.0) is not None for _ in range(200))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 1_000
    assert (len(pending), pending.sent, pending.refused) == (1_000, 1_000, 600)


def test_many_have_ids_of_their_own_and_as_many_are_taken_as_there_is_room_for() -> None:
    pending = PendingRequests(10)
    futures = [add(pending), *pending.add_many(6, 0.0, 60.0), add(pending), *pending.add_many(6, 0.0, 60.0)]
    assert len({one.request_id for one in futures}) == len(pending) == 10
    assert all(pending.take(one.request_id) is one for one in futures)
    assert (pending.sent, pending.refused) == (10, 4)


def test_many_have_their_watcher_look_sooner() -> None:
    pending = PendingRequests(10)
    add(pending, 0.0, 60.0)
    many = pending.add_many(2, 0.0, 1.0)
    assert pending.take_expired(1.5) == many


def test_those_whose_time_is_up_are_found_whatever_their_order() -> None:
    pending = PendingRequests(10)
    late, soon, middle = (add(pending, 0.0, timeout_s) for timeout_s in (60.0, 1.0, 5.0))
    assert pending.take_expired(0.9) == []
    assert pending.take_expired(1.0) == [soon]
    assert pending.take_expired(4.9) == []
    complete(pending, middle)
    assert pending.take_expired(60.0) == [late]
    assert pending.take_expired(1_000.0) == []
    assert len(pending) == 0


def test_a_deadline_that_is_sooner_wakes_who_waits_for_the_next() -> None:
    pending, clock = PendingRequests(10), ManualClock()
    add(pending, clock.monotonic(), 3_600.0)
    with ThreadPoolExecutor(1) as pool:
        is_due = pool.submit(pending.wait_until_due, clock, 0.0)
        clock.advance(10.0)
        add(pending, 0.0, 5.0)
        assert is_due.result(DEADLINE_S)


def test_closing_ends_the_waiting_and_gives_out_what_was_left() -> None:
    pending = PendingRequests(10)
    futures = [add(pending) for _ in range(3)]
    complete(pending, futures[1])
    with ThreadPoolExecutor(1) as pool:
        is_due = pool.submit(pending.wait_until_due, ManualClock(), 0.0)
        assert pending.close() == [futures[0], futures[2]]
        assert not is_due.result(DEADLINE_S)
    assert pending.add(0.0, 1.0) is None
    assert pending.close() == []


def test_memory_is_told_by_the_request() -> None:
    pending = PendingRequests(20_000)
    for _ in range(10_000):
        add(pending)
    assert 100 * 10_000 < pending.memory_bytes < 1_024 * 10_000


def test_the_oldest_is_the_one_that_waits_longest() -> None:
    pending = PendingRequests(10)
    assert pending.ages(5.0).oldest_ms == 0
    first = add(pending, 1.0)
    add(pending, 2.0)
    assert pending.ages(5.0).oldest_ms == 4_000
    complete(pending, first)
    assert pending.ages(5.0).oldest_ms == 3_000
    # Who asks may have looked at the clock before one was sent.
    assert pending.ages(1.5).oldest_ms == 0


@given(st.lists(st.integers(0, 100_000)))
def test_ages_are_counted_as_lags_are(ages_ms: list[int]) -> None:
    pending, lags = PendingRequests(1_000), LagHistogram()
    for age_ms in sorted(ages_ms, reverse=True):
        add(pending, -age_ms / 1000)
    lags.add(ages_ms)
    assert pending.ages(0.0).buckets == tuple(lags.buckets)


# Futures


def test_a_thread_waits_for_the_answer() -> None:
    pending = PendingRequests(1)
    future = add(pending)
    assert not future.done()
    with pytest.raises(TimeoutError, match=r"no answer within 0.01 s; the request still waits"):
        future.result(0.01)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(future.result, DEADLINE_S) for _ in range(4)]
        complete(pending, future)
        assert {one.result(DEADLINE_S) for one in waiting} == {ANSWER}
    assert (future.done(), future.cancelled(), future.exception(0)) == (True, False, None)


def test_an_error_is_raised_to_all_who_wait() -> None:
    future = add(PendingRequests(1))
    future.stored(ProviderUnavailable("the broker is away"))
    with pytest.raises(ProviderUnavailable, match="away"):
        future.result()
    assert isinstance(future.exception(), ProviderUnavailable)


def test_being_stored_does_not_end_it() -> None:
    pending = PendingRequests(1)
    future = add(pending)
    future.stored(None)
    assert not future.done()
    complete(pending, future)
    future.stored(ProviderUnavailable("too late to matter"))
    assert future.result() is ANSWER
    assert pending.not_stored == 0


def test_cancelling_makes_room_and_is_told_once() -> None:
    pending = PendingRequests(1)
    future, told = add(pending), []
    future.add_done_callback(told.append)
    assert (future.cancel(), future.cancel()) == (True, False)
    assert future.cancelled()
    with pytest.raises(RequestCancelled):
        future.result(0)
    assert told == [future]
    assert (len(pending), pending.cancelled) == (0, 1)
    assert pending.add(0.0, 1.0) is not None


def test_callbacks_run_once_whenever_they_come(caplog: pytest.LogCaptureFixture) -> None:
    pending = PendingRequests(1)
    future, told = add(pending), []

    def fail(_: ResponseFuture) -> None:
        raise RuntimeError("no ears")

    future.add_done_callback(fail)
    future.add_done_callback(lambda one: told.append(("before", one)))
    complete(pending, future)
    future.add_done_callback(lambda one: told.append(("after", one)))
    assert told == [("before", future), ("after", future)]
    assert "no ears" in caplog.text


def test_callbacks_and_endings_at_the_same_moment_lose_nothing() -> None:
    for _ in range(300):
        pending = PendingRequests(1)
        future, told, together = add(pending), [], threading.Barrier(3)

        def listen(future: ResponseFuture = future, told: list = told, together: threading.Barrier = together) -> None:
            together.wait(DEADLINE_S)
            future.add_done_callback(told.append)

        threads = [threading.Thread(target=listen) for _ in range(2)]
        for thread in threads:
            thread.start()
        together.wait(DEADLINE_S)
        complete(pending, future)
        for thread in threads:
            thread.join()
        assert told == [future, future]


def test_answers_are_awaited_in_any_number_of_loops() -> None:
    pending = PendingRequests(3)
    futures = [add(pending) for _ in range(3)]

    async def ask() -> list[Record]:
        async def one(future: ResponseFuture) -> Record:
            return await future

        return await asyncio.gather(*(one(future) for future in futures))

    with ThreadPoolExecutor(2) as pool:
        loops = [pool.submit(asyncio.run, ask()) for _ in range(2)]
        wait_until(lambda: all(len(future._then or ()) == 2 for future in futures))
        wakes = Wakes()
        for future in futures:
            taken = pending.take(future.request_id)
            assert taken is not None
            taken.complete(ANSWER, wakes)
        wakes.wake()
        assert [one.result(DEADLINE_S) for one in loops] == [[ANSWER] * 3] * 2


def test_a_task_that_is_cancelled_cancels_its_request() -> None:
    pending = PendingRequests(1)

    async def give_up() -> None:
        async with asyncio.timeout(0.01):
            await add(pending)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert (len(pending), pending.cancelled) == (0, 1)


def test_a_loop_that_is_closed_holds_up_nobody() -> None:
    pending = PendingRequests(1)
    future = add(pending)
    loop = asyncio.new_event_loop()
    future._join((loop, loop.create_future()))
    loop.close()
    complete(pending, future)
    assert future.result(0) is ANSWER


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens to requests in whatever order: each has one end, and the counts say which."""

    def __init__(self) -> None:
        super().__init__()
        self.pending = PendingRequests(8)
        self.now = 0.0
        self.open: list[ResponseFuture] = []
        self.ends: dict[bytes, list[str]] = {}
        self.refused = 0

    def end(self, future: ResponseFuture, how: str) -> None:
        self.open.remove(future)
        self.ends[future.request_id].append(how)

    @rule(timeout_s=st.integers(1, 5))
    def ask(self, timeout_s: int) -> None:
        future = self.pending.add(self.now, float(timeout_s))
        if future is None:
            assert len(self.open) == 8
            self.refused += 1
        else:
            self.open.append(future)
            self.ends[future.request_id] = []

    @precondition(lambda self: self.ends)
    @rule(data=st.data())
    def answer_any(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.ends)))
        if (future := self.pending.take(request_id)) is not None:
            future.complete(ANSWER, Wakes())
            self.end(future, "answered")

    @precondition(lambda self: self.open)
    @rule(data=st.data(), how=st.sampled_from(["cancelled", "not_stored"]))
    def give_up(self, data: st.DataObject, how: str) -> None:
        future = data.draw(st.sampled_from(self.open))
        if how == "cancelled":
            assert future.cancel()
        else:
            future.stored(QueueError("refused"))
        self.end(future, how)

    @rule(seconds=st.integers(0, 3))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        due = {future.request_id for future in self.open if future.deadline <= self.now}
        expired = self.pending.take_expired(self.now)
        assert {future.request_id for future in expired} == due
        for future in expired:
            future.fail(RequestTimeout("too late"))
            self.end(future, "timed_out")

    @invariant()
    def each_ends_once(self) -> None:
        assert len(self.pending) == len(self.open)
        assert all(future.done() is False for future in self.open)
        ended = [how for ends in self.ends.values() for how in ends]
        assert all(len(ends) <= 1 for ends in self.ends.values())
        assert self.pending.sent == len(self.open) + len(ended)
        assert (self.pending.cancelled, self.pending.not_stored) == (
            ended.count("cancelled"),
            ended.count("not_stored"),
        )
        assert self.pending.refused == self.refused


TestAnyOrder = AnyOrder.TestCase
