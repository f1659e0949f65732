"""One run of the pipeline: what is new in `queue.metrics` becomes summaries, and the run ends.

Exactly once: Spark notes in the checkpoint folder which offsets a batch has before it is computed, and repeats the
batch after a failure. What takes effect is decided in the database alone: a batch that is stored is not stored again,
and an event below the offsets that are stored is left out, whoever reads it again. A checkpoint that is lost, or is
another source's, costs reading and nothing else.
"""

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from django.db import DatabaseError, connections
from django.utils import timezone
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from queueapi.config import Config, config
from queueapi.event_files import event_folder
from queueapi.runtime import open_provider
from workers.spark.batches import Batch, check_store, is_stored, known_positions, store_batch
from workers.spark.compaction import settle_compaction
from workers.spark.errors import PipelineFailed, essence
from workers.spark.frames import BatchFrames
from workers.spark.locking import pipeline_lock
from workers.spark.reading import event_source, staged_events
from workers.spark.reports import Offsets, Report, together
from workers.spark.session import spark_session, stop_session, suit
from workers.spark.sinks import Row, Sink
from workers.spark.source import end_offsets
from workers.spark.store import EventStore
from workers.spark.summaries import SUMMARIES, WINDOW_S, make_all
from workers.spark.waiting import NoExecutors, executors, is_over, no_worker, too_long

logger = logging.getLogger(__name__)

_START_TIMEOUT_S: Final = 60


@dataclass(slots=True)
class RunSummary:
    """What one run did. No new events: no batches. `backlog` is how many events wait when it is over."""

    batches: int = 0
    events: int = 0
    unusable: int = 0
    rows: int = 0
    newest_event_at: datetime | None = None
    backlog: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        if not self.batches:
            return f"nothing new, {self.seconds:.1f} s"
        newest = f", the newest of {self.newest_event_at:%H:%M:%S} UTC" if self.newest_event_at else ""
        return f"{self.events} events{newest}, {self.seconds:.1f} s"


def run_pipeline() -> RunSummary:
    """Take what is new, store its summaries, and return. One run at a time: a second caller waits.

    SparkUnavailable where Spark cannot start, or its cluster has had no worker for a minute; PipelineBusy where another
    process runs it; PipelineFailed where the run ended early; another QueueError where the provider does not answer.
    What was not stored is taken by the next run."""
    installation = config()
    with _failing_as_told(), pipeline_lock(installation):
        started = time.monotonic()
        store = event_store(installation)
        check_store(store.id)
        store.settle(is_stored)
        settle_compaction(store)
        ends = _ends(installation)
        summary = RunSummary()
        if _waiting(ends, positions(installation, ends)):
            with store.staging() as stage, closing(_Sink(installation, store, stage, ends)) as sink:
                summary = _run(spark_session(), installation, sink)
        ends = _ends(installation)
        backlog = _waiting(ends, positions(installation, ends))
        return replace(summary, backlog=backlog, seconds=time.monotonic() - started)


@contextmanager
def _failing_as_told() -> Iterator[None]:
    """A full disk, a file that is not what it should be, a database that is away: the run's failure, as any other."""
    try:
        yield
    except (OSError, ValueError, DatabaseError) as error:
        logger.debug("what the run failed of", exc_info=error)
        raise PipelineFailed(f"the run ended early: {essence(error)}") from error


def positions(installation: Config, ends: Offsets) -> Offsets:
    """Where events that are not stored begin. A topic that ends before has been made anew: all of it is new."""
    known = known_positions(installation.queue.type)
    return {one: offset if offset <= ends.get(one, offset) else 0 for one, offset in known.items()}


def event_store(installation: Config) -> EventStore:
    return EventStore(event_folder(installation))


def checkpoint_dir(installation: Config) -> Path:
    return installation.data / "spark" / "checkpoints" / event_source(installation)


def _run(spark: SparkSession, installation: Config, sink: "_Sink") -> RunSummary:
    try:
        query = (
            sink.events(spark)
            .writeStream.queryName("events")
            .option("checkpointLocation", str(checkpoint_dir(installation)))
            .trigger(availableNow=True)
            .foreachBatch(sink)
            .start()
        )
        sink.query_id.set_result(query.id)
        ended = is_over(query, partial(executors, spark), installation.pipeline_timeout_s)
    except NoExecutors:
        stop_session()
        raise no_worker(installation) from None
    except (PySparkException, Py4JError, OSError) as error:
        cause = sink.error or error
        logger.debug("what Spark says of it", exc_info=error)
        raise PipelineFailed(f"the run ended early: {essence(cause)}") from cause
    if not ended:
        # Whatever it hangs on goes with its JVM.
        stop_session()
        raise too_long("the run", installation)
    return sink.summary


class _Sink:
    """Stores each batch of one run. Spark calls it, on a thread of its own, which may outlive the run: after `close` it
    stores nothing any more, as the next run takes the same events."""

    def __init__(self, installation: Config, store: EventStore, stage: Path, ends: Offsets) -> None:
        self.summary = RunSummary()
        self.error: Exception | None = None
        # Made with the checkpoint folder and kept in it: a lost checkpoint gives a new one.
        self.query_id: Future[str] = Future()
        self._installation = installation
        self._store = store
        self._stage = stage
        self._ends = ends
        self._changing = threading.Lock()
        self._is_closed = False

    def close(self) -> None:
        """When this returns, what it was about to store is stored and published, or never will be."""
        with self._changing:
            self._is_closed = True

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._changing:
            if self._is_closed:
                raise PipelineFailed("the run was ended before this batch was stored; the next run takes its events")
            yield

    def events(self, spark: SparkSession) -> DataFrame:
        known = positions(self._installation, self._ends)
        return staged_events(spark, self._installation, known, self._stage)

    def __call__(self, reports: DataFrame, batch_id: int) -> None:
        try:
            self._take(reports, batch_id)
        except Exception as error:
            self.error = error
            raise
        finally:
            # The thread is Spark's and may never come back, so its connection is not left open.
            connections.close_all()

    def _take(self, reports: DataFrame, batch_id: int) -> None:
        query = f"{event_source(self._installation)}.{self.query_id.result(_START_TIMEOUT_S)}"
        provider = self._installation.queue.type
        known = known_positions(provider)
        batch = Batch(provider, self._store.id, query, batch_id, started_at=timezone.now(), positions=known)
        if is_stored(batch.name):
            return
        report = together(map(Report.from_json, reports.toArrow().column("report").to_pylist()))
        if report.events:
            with self._open():
                folder = self._store.prepare(batch.name, report, self._stage)
            made = self._summaries(reports.sparkSession, report, folder)
            with self._open():
                rows = store_batch(batch, report, made)
                self._store.publish(batch.name)
            self._note(report, rows)

    def _summaries(self, spark: SparkSession, report: Report, folder: Path) -> list[tuple[Sink, list[Row]]]:
        suit(spark, report.events)
        frames = BatchFrames(spark, self._store, folder, report, WINDOW_S)
        return [(summary.sink, rows) for summary, rows in make_all(SUMMARIES, frames, self._installation)]

    def _note(self, report: Report, rows: int) -> None:
        self.summary.rows += rows
        self.summary.batches += 1
        self.summary.events += report.events
        self.summary.unusable += report.unusable_events
        self.summary.newest_event_at = report.newest_at(timezone.now()) or self.summary.newest_event_at
        for reason, count in report.unusable.items():
            logger.warning("%d unusable events: %s; the first at %s", count, reason, report.examples[reason])


def _ends(installation: Config) -> Offsets:
    with closing(open_provider(installation)) as provider:
        return end_offsets(provider)


def _waiting(ends: Offsets, positions: Offsets) -> int:
    return sum(max(0, end - positions.get(partition, 0)) for partition, end in ends.items())
