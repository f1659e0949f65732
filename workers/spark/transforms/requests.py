"""What service instances ask of each other: what is pending, what timed out, how long answers take."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from queuecore.requests import LAG_BOUNDS_MS
from workers.spark.transforms.buckets import summed, usable, with_percentiles
from workers.spark.transforms.minutes import touched

KEY: Final = ("service_id", "request_topic")
LEVELS: Final = ("pending", "pending_limit", "pending_memory_bytes", "oldest_pending_ms")
COUNTS: Final = (
    "sent",
    "answered",
    "failed",
    "timed_out",
    "not_stored",
    "cancelled",
    "refused",
    "late",
    "orphans",
)
_CURRENT_US: Final = 60_000_000


def request_current(known: DataFrame) -> DataFrame:
    """Where each instance of which the batch has samples stands with each topic, at its newest one: rows of
    `RequestCurrent`. What is pending is of then; what is counted, of the minute before. `known` are the samples of
    window and batch `together`."""
    newest = known.groupBy(*KEY).agg(f.max("at").alias("newest_at"), f.max("is_new").alias("has_new"))
    with_newest = known.join(f.broadcast(newest.where("has_new")), [*KEY])
    lately = with_newest.where(f.unix_micros("newest_at") - f.unix_micros("at") < _CURRENT_US)
    levels = (f.max_by(name, "at").alias(name) for name in LEVELS)
    now = lately.groupBy(*KEY).agg(f.max("at").alias("as_of"), *levels, _ages(), *_counted())
    return with_percentiles(now, "lag_buckets", LAG_BOUNDS_MS, "lag_p{}_ms")


def request_minutes(known: DataFrame) -> DataFrame:
    """The minutes of which the batch has samples, each made anew from window and batch `together`, with the most that
    was pending: rows of `RequestStats`."""
    levels = (f.max(name).alias(name) for name in LEVELS)
    minutes = known.groupBy(*KEY, f.date_trunc("minute", "at").alias("at")).agg(
        f.max("is_new").alias("is_new"), *levels, *_counted()
    )
    return with_percentiles(touched(minutes), "lag_buckets", LAG_BOUNDS_MS, "lag_p{}_ms")


def _ages() -> Column:
    """For how long requests wait at the newest sample; none where that is of a version that does not tell."""
    newest = f.max_by(usable("age_buckets", "lag_bounds_ms", LAG_BOUNDS_MS), "at")
    return f.coalesce(newest, f.array().cast("array<bigint>")).alias("age_buckets")


def _counted() -> list[Column]:
    buckets = summed("lag_buckets", "lag_bounds_ms", LAG_BOUNDS_MS).alias("lag_buckets")
    return [*(f.sum(name).alias(name) for name in COUNTS), buckets]
