"""The summaries of a day, made anew of all its events."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from functools import partial

from django.db import transaction
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from queueapi.config import config
from workers.spark.batches import check_store, is_stored
from workers.spark.compaction import settle_compaction
from workers.spark.errors import PipelineFailed, essence
from workers.spark.frames import StoredFrames
from workers.spark.locking import pipeline_lock
from workers.spark.pipeline import event_store
from workers.spark.session import MUCH, spark_session, stop_session, suit
from workers.spark.store import Stretch
from workers.spark.summaries import SUMMARIES, WINDOW_S, make_all
from workers.spark.waiting import NoExecutors, TookTooLong, executors, no_worker, too_long, with_executors

_DAY_MS = 86_400_000


def backfill_day(day: date, note: Callable[[], None]) -> int:
    """How many rows there are of it now. `note` is called in their transaction: what it raises undoes them.

    What is added up while events come in is replaced here: a day has all that there is of its minutes and hours. What
    is stored of it beside these rows goes, as no event tells of it. No run is under way meanwhile, so that nothing is
    lost.

    PipelineFailed where that takes longer than a run may; nothing is stored then."""
    installation = config()
    with pipeline_lock(installation):
        store = event_store(installation)
        check_store(store.id)
        store.settle(is_stored)
        settle_compaction(store)
        spark = spark_session()
        # A day is much, and nobody waits for it.
        suit(spark, MUCH)
        frames = StoredFrames(spark, store, _stretch(day), WINDOW_S)
        history = tuple(summary for summary in SUMMARIES if summary.is_history)
        cancel, timeout_s = spark.sparkContext.cancelAllJobs, installation.pipeline_timeout_s
        watched = with_executors(partial(executors, spark), cancel, timeout_s)
        try:
            with watched:
                made = [(summary.sink, rows) for summary, rows in make_all(history, frames, installation)]
        except NoExecutors:
            stop_session()
            raise no_worker(installation) from None
        except TookTooLong:
            stop_session()
            raise too_long(f"the back-fill of {day}", installation) from None
        except (PySparkException, Py4JError, OSError) as error:
            raise PipelineFailed(f"the summaries of {day} could not be made: {essence(error)}") from error
        with transaction.atomic():
            rows = sum(sink.renew(of_day, day) for sink, of_day in made)
            note()
    return rows


def _stretch(day: date) -> Stretch:
    start_ms = int(datetime.combine(day, time(), UTC).timestamp() * 1000)
    return Stretch(start_ms, start_ms + _DAY_MS)
