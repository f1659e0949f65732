"""Waiting for the end of a query: not for ever, and not for a cluster that has nobody to run it."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Final, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from queueapi.config import Config
from queuecore.clock import SYSTEM_CLOCK, Clock
from workers.spark.errors import PipelineFailed, SparkUnavailable

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 5
# A cluster takes some seconds to start executors, and a little longer to replace those that were lost.
ALONE_S: Final = 60.0
# Java answers within milliseconds, or hangs.
ANSWER_S: Final = 10.0


class NoExecutors(Exception):
    """For ALONE_S there was nobody to run a task."""


class TookTooLong(Exception):
    """It was not over in time."""


def no_worker(installation: Config) -> SparkUnavailable:
    """What to tell of NoExecutors."""
    return SparkUnavailable(
        f"Spark at {installation.spark_master} has had no worker for this run for {ALONE_S:g} s, and the run was "
        "ended; start the cluster's workers, or free one"
    )


def too_long(what: str, installation: Config) -> PipelineFailed:
    """What to tell of what was not over in time."""
    return PipelineFailed(
        f"{what} was not over after {installation.pipeline_timeout_s} s (SWITCHYARD_PIPELINE_TIMEOUT_S) and was ended; "
        f"look whether Spark at {installation.spark_master} has workers that are free, or allow more time"
    )


class Query(Protocol):
    def awaitTermination(self, timeout: int | None = None) -> bool | None: ...  # noqa: N802 - as Spark calls it


def is_over(query: Query, executors: Callable[[], int], timeout_s: float, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Wait for its end; False where that has not come in time. NoExecutors. What the query fails of is raised."""
    end, alone = clock.monotonic() + timeout_s, _Alone(clock)
    while (remaining_s := end - clock.monotonic()) > 0:
        if query.awaitTermination(min(LOOK_EVERY_S, ceil(remaining_s))):
            return True
        if alone.for_too_long(executors()):
            raise NoExecutors
    return False


@contextmanager
def with_executors(
    executors: Callable[[], int],
    cancel: Callable[[], None],
    timeout_s: float,
    clock: Clock = SYSTEM_CLOCK,
    look_every_s: float = LOOK_EVERY_S,
    answer_s: float = ANSWER_S,
) -> Iterator[None]:
    """Within, queries are run whose end one cannot but wait for: another thread looks whether there is anybody to run
    them, and time left for them, and cancels them where there is not. TookTooLong then; or NoExecutors, unless there is
    again somebody when a query fails.

    A look that hangs is not waited for: its thread stays behind, and does nothing any more."""
    ended, patience = threading.Event(), _Patience(executors, timeout_s, clock)
    given_up: type[NoExecutors | TookTooLong] | None = None

    def look() -> None:
        nonlocal given_up
        while not ended.wait(look_every_s):
            try:
                found = patience.ends()
                if ended.is_set():
                    return
                given_up = found
                if given_up is not None:
                    cancel()
            except (Py4JError, OSError):
                return  # Spark itself is gone, and the query says so

    looking = threading.Thread(target=look, name="spark-executors", daemon=True)
    looking.start()
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if given_up is not None:
            raise given_up from error
        raise
    finally:
        ended.set()
        looking.join(answer_s)
        if looking.is_alive():
            logger.warning("Spark has not said within %g s how many executors it has; nobody waits for that", answer_s)


def executors(spark: SparkSession) -> int:
    """How many processes run its tasks now. Without a cluster it is Spark's own."""
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return 1
    # The driver is among them.
    known = context._jsc.sc().getExecutorMemoryStatus()  # noqa: SLF001 - PySpark has no public question for it
    return int(known.size()) - 1


class _Alone:
    """Since when there has been nobody."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None

    def for_too_long(self, executors: int) -> bool:
        now = self._clock.monotonic()
        self._since = None if executors else now if self._since is None else self._since
        return self._since is not None and now - self._since >= ALONE_S


class _Patience:
    """With queries that there is so much time for."""

    def __init__(self, executors: Callable[[], int], timeout_s: float, clock: Clock) -> None:
        self._executors = executors
        self._alone = _Alone(clock)
        self._clock = clock
        self._end = clock.monotonic() + timeout_s

    def ends(self) -> type[NoExecutors | TookTooLong] | None:
        """Why it does, if so. Who is late is so whoever is there."""
        if self._clock.monotonic() >= self._end:
            return TookTooLong
        return NoExecutors if self._alone.for_too_long(self._executors()) else None
