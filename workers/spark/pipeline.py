"""One run of the pipeline: what is new in `queue.metrics` becomes summaries, and the run ends.

Exactly once: Spark notes in the checkpoint folder which offsets a batch has before it is computed, and repeats the
batch after a failure; `store_batch` gives a repeated batch no effect.
"""

import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pyarrow as pa
from django.db import connections
from django.utils import timezone
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from queueapi.config import Config, config
from workers.spark.errors import PipelineFailed, essence
from workers.spark.options import source_options
from workers.spark.session import spark_session
from workers.spark.sinks import Batch, LagRow, known_samples, store_batch
from workers.spark.source import FORMAT, MetricsSource
from workers.spark.transforms import KNOWN_SCHEMA, current_lag

logger = logging.getLogger(__name__)

QUERY = "lag"

_START_TIMEOUT_S = 60
_running = threading.Lock()


@dataclass(slots=True)
class RunSummary:
    """What one run did. No new events: no batches."""

    batches: int = 0
    events: int = 0
    newest_event_at: datetime | None = None
    seconds: float = 0.0

    def __str__(self) -> str:
        if not self.batches:
            return f"nothing new, {self.seconds:.1f} s"
        newest = f", the newest of {self.newest_event_at:%H:%M:%S} UTC" if self.newest_event_at else ""
        return f"{self.events} events{newest}, {self.seconds:.1f} s"


def run_pipeline() -> RunSummary:
    """Take what is new, store its summaries, and return. One run at a time: a second caller waits.

    SparkUnavailable where Spark cannot start; PipelineFailed where the run ended early, in which case what was
    not stored is taken by the next run."""
    with _running:
        started = time.monotonic()
        spark = spark_session()
        sink = _Sink(_rate_window_s(config()))
        try:
            _start(spark, config(), sink).awaitTermination()
        except (PySparkException, Py4JError, OSError) as error:
            cause = sink.error or error
            logger.debug("what Spark says of it", exc_info=error)
            raise PipelineFailed(f"the run ended early: {essence(cause)}") from cause
        return replace(sink.summary, seconds=time.monotonic() - started)


def checkpoint_dir(installation: Config) -> Path:
    return installation.data / "spark" / "checkpoints" / QUERY


class _Sink:
    """Stores each batch of one run. Spark calls it, on a thread of its own."""

    def __init__(self, rate_window_s: int) -> None:
        self.summary = RunSummary()
        self.error: Exception | None = None
        # Made with the checkpoint folder and kept in it: a lost checkpoint gives a new one.
        self.query_id: Future[str] = Future()
        self._rate_window_s = rate_window_s

    def __call__(self, samples: DataFrame, batch_id: int) -> None:
        try:
            self._store(samples, batch_id)
        except Exception as error:
            self.error = error
            raise
        finally:
            # The thread is Spark's and may never come back, so its connection is not left open.
            connections.close_all()

    def _store(self, samples: DataFrame, batch_id: int) -> None:
        query = f"{QUERY}:{self.query_id.result(_START_TIMEOUT_S)}"
        batch = Batch(query, batch_id, started_at=timezone.now())
        known = samples.sparkSession.createDataFrame(pa.Table.from_pylist(known_samples(), schema=KNOWN_SCHEMA))
        rows = _lag_rows(current_lag(samples, known, self._rate_window_s))
        if store_batch(batch, rows):
            self.summary.batches += 1
            self.summary.events += sum(row.samples for row in rows)
            self.summary.newest_event_at = max((row.as_of for row in rows), default=self.summary.newest_event_at)


def _lag_rows(frame: DataFrame) -> list[LagRow]:
    """Through Arrow, which keeps the times' zone."""
    return [LagRow(**row | {"queue_id": UUID(row["queue_id"])}) for row in frame.toArrow().to_pylist()]


def _rate_window_s(installation: Config) -> int:
    """Long enough to hold two samples and the last run's, whatever the intervals are."""
    return max(30, 3 * installation.sample_interval_s, 3 * installation.pipeline_interval_s)


def _start(spark: SparkSession, installation: Config, sink: _Sink) -> StreamingQuery:
    spark.dataSource.register(MetricsSource)
    samples = spark.readStream.format(FORMAT).options(**source_options(installation)).load()
    query = (
        samples.writeStream.queryName(QUERY)
        .option("checkpointLocation", str(checkpoint_dir(installation)))
        .trigger(availableNow=True)
        .foreachBatch(sink)
        .start()
    )
    sink.query_id.set_result(query.id)
    return query
