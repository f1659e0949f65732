"""What became of messages, how long attempts took, and which errors made letters of them."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from queuecore.metrics import PROCESSING_BOUNDS_MS
from workers.spark.transforms.buckets import PERCENTILES, percentile, summed
from workers.spark.transforms.minutes import once, together, touched

_COUNTS: Final = (
    "polled",
    "polled_bytes",
    "handled",
    "failed",
    "timed_out",
    "retried",
    "dead_lettered",
    "dropped",
)
_COLUMNS: Final = (
    *("at", "service_id", "queue_id", "partition", "interval_ms"),
    *_COUNTS,
    *("processing_bounds_ms", "processing_buckets"),
)


def processing_minutes(samples: DataFrame, window: DataFrame, *, is_once: bool = False) -> DataFrame:
    """The minutes of which the batch has samples, each made anew from window and batch: rows of
    `ProcessingMinute`."""
    known = together(samples.select(*_COLUMNS), window.select(*_COLUMNS), is_once=is_once)
    minutes = known.groupBy("queue_id", f.date_trunc("minute", "at").alias("at")).agg(
        f.max("is_new").alias("is_new"),
        *(f.sum(name).alias(name) for name in _COUNTS),
        summed("processing_buckets", "processing_bounds_ms", PROCESSING_BOUNDS_MS).alias("buckets"),
    )
    buckets = f.col("buckets")
    return touched(minutes).withColumns(
        {f"p{one}_ms": percentile(buckets, PROCESSING_BOUNDS_MS, one) for one in PERCENTILES}
    )


def letter_trend(samples: DataFrame, *, is_once: bool = False) -> DataFrame:
    """How many letters of each error the batch tells of, by the hour: to be added to the rows of `DeadLetterTrend`."""
    letters = once(samples, is_once=is_once).select("queue_id", "at", f.explode("letters").alias("letter"))
    return letters.groupBy(
        "queue_id", f.col("letter.fingerprint").alias("fingerprint"), f.date_trunc("hour", "at").alias("at")
    ).agg(f.sum("letter.letters").alias("letters"))
