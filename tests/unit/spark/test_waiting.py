"""For whose end the pipeline waits, and how long: the query is made up, and time is a clock's that is turned by it."""

import threading

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S
from workers.spark.waiting import ALONE_S, LOOK_EVERY_S, NoExecutors, TookTooLong, is_over, with_executors

IN_TIME_S = 900.0


class Query:
    """Ends after so many seconds."""

    def __init__(self, ends_s: float) -> None:
        self.clock = ManualClock()
        self.started = self.clock.monotonic()
        self.ends_s = ends_s

    @property
    def age_s(self) -> float:
        return self.clock.monotonic() - self.started

    def awaitTermination(self, timeout: int | None = None) -> bool:  # noqa: N802 - as Spark calls it
        assert timeout is not None
        assert timeout > 0
        self.clock.advance(min(timeout, max(0.0, self.ends_s - self.age_s)))
        return self.age_s >= self.ends_s


def test_what_ends_in_time_is_over() -> None:
    query = Query(17)
    assert is_over(query, lambda: 2, 900, query.clock)
    assert query.age_s == 17


def test_what_does_not_is_not_waited_for_any_longer() -> None:
    query = Query(2_000)
    assert not is_over(query, lambda: 2, 900, query.clock)
    assert query.age_s == 900


def test_a_cluster_without_executors_is_given_up_after_a_minute() -> None:
    query = Query(2_000)
    with pytest.raises(NoExecutors):
        is_over(query, lambda: 0, 900, query.clock)
    assert ALONE_S <= query.age_s <= ALONE_S + 2 * LOOK_EVERY_S


def test_one_that_replaces_them_goes_on() -> None:
    """Half a minute without, again and again."""
    query = Query(600)
    assert is_over(query, lambda: int(query.age_s % 60 >= 30), 900, query.clock)


class Job:
    """A query that ends when it is cancelled, or has what it waits for."""

    def __init__(self) -> None:
        self.ended, self.was_cancelled, self.looks = threading.Event(), False, 0
        self.clock = ManualClock()

    def cancel(self) -> None:
        self.was_cancelled = True
        self.ended.set()

    def executors(self) -> int:
        """Nobody is there, and time flies."""
        self.looks += 1
        self.clock.advance(ALONE_S / 3)
        return 0

    def wait(self) -> None:
        assert self.ended.wait(DEADLINE_S)
        if self.was_cancelled:
            raise PySparkException("cancelled")


def test_a_query_that_nobody_runs_is_cancelled() -> None:
    job = Job()
    with pytest.raises(NoExecutors), with_executors(job.executors, job.cancel, IN_TIME_S, job.clock, 0.001):
        job.wait()
    assert job.looks >= 4


def test_one_that_takes_too_long_is_cancelled() -> None:
    """Where it is between two of its queries, the next one is."""
    job, cancelled = Job(), []

    def executors() -> int:
        return job.executors() + 2

    def cancel() -> None:
        cancelled.append(job.looks)
        if len(cancelled) == 2:
            job.cancel()

    with pytest.raises(TookTooLong), with_executors(executors, cancel, IN_TIME_S, job.clock, 0.001):
        job.wait()
    assert cancelled == [IN_TIME_S / (ALONE_S / 3)] * 2, "not before"


def test_a_query_that_fails_when_there_is_somebody_again_fails_of_something_else() -> None:
    """Between two queries there was nothing to cancel."""
    job, was_given_up, seen = Job(), threading.Event(), threading.Semaphore(0)

    def executors() -> int:
        if not was_given_up.is_set():
            return job.executors()
        seen.release()
        return 2

    def fail() -> None:
        # Of the first look something has come when there is a second.
        assert seen.acquire(timeout=DEADLINE_S)
        assert seen.acquire(timeout=DEADLINE_S)
        raise PySparkException("a disk is full")

    with (
        pytest.raises(PySparkException, match="a disk is full"),
        with_executors(executors, was_given_up.set, IN_TIME_S, job.clock, 0.001),
    ):
        fail()


def test_a_look_that_hangs_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """And cancels nothing when it comes back after all: that would be another query's."""
    job, hangs, may_answer = Job(), threading.Event(), threading.Event()
    before = set(threading.enumerate())

    def executors() -> int:
        if job.looks:
            hangs.set()
            assert may_answer.wait(DEADLINE_S)
            job.clock.advance(ALONE_S)
        return job.executors()

    with with_executors(executors, job.cancel, IN_TIME_S, job.clock, 0.001, answer_s=0.01):
        assert hangs.wait(DEADLINE_S)
    assert "has not said within 0.01 s" in caplog.text
    may_answer.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(DEADLINE_S)
    assert not job.was_cancelled


def test_one_that_somebody_runs_is_left_alone() -> None:
    job = Job()

    def executors() -> int:
        if job.executors() == 0 and job.looks == 10:
            job.ended.set()
        return 2

    with with_executors(executors, job.cancel, IN_TIME_S, job.clock, 0.001):
        job.wait()
    assert not job.was_cancelled


def test_another_error_stays_what_it_is() -> None:
    job = Job()
    with (
        pytest.raises(PySparkException, match="mine"),
        with_executors(lambda: 2, job.cancel, IN_TIME_S, job.clock, 0.001),
    ):
        raise PySparkException("mine")


def test_when_spark_itself_is_gone_the_query_says_so() -> None:
    job = Job()

    def executors() -> int:
        job.ended.set()
        raise Py4JError("no JVM")

    with with_executors(executors, job.cancel, IN_TIME_S, job.clock, 0.001):
        job.wait()
    assert not job.was_cancelled
