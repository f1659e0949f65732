"""What became of messages, how long attempts took, and which errors made letters of them."""

from collections.abc import Iterator
from functools import partial, reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from queuecore.metrics import PROCESSING_BOUNDS_MS
from workers.spark.schemas import CONSUMED_SAMPLES
from workers.spark.transforms.arrow import map_parts
from workers.spark.transforms.buckets import added, with_percentiles
from workers.spark.transforms.minutes import touched
from workers.spark.transforms.samples import (
    AT,
    HOUR_US,
    MINUTE_US,
    SampleFiles,
    exploded,
    grouped,
    read_once,
    since,
    summed,
)

COUNTS: Final = (
    "polled",
    "polled_bytes",
    "handled",
    "failed",
    "timed_out",
    "retried",
    "dead_lettered",
    "dropped",
)
_HISTOGRAM: Final = ("processing_bounds_ms", "processing_buckets")
_BUCKETS: Final = tuple(f"bucket_{number}" for number in range(len(PROCESSING_BOUNDS_MS) + 1))

_MINUTES: Final = pa.schema(
    [
        ("queue_id", pa.string()),
        ("at", AT),
        ("is_new", pa.bool_()),
        *((name, pa.int64()) for name in (*COUNTS, *_BUCKETS)),
    ]
)
_MINUTES_HOW: Final = {"is_new": "max", **dict.fromkeys((*COUNTS, *_BUCKETS), "sum")}
_LETTERS: Final = pa.schema(
    [("queue_id", pa.string()), ("fingerprint", pa.string()), ("at", AT), ("letters", pa.int64())]
)


def processing_minutes(parts: DataFrame, consumed: SampleFiles) -> DataFrame:
    """The minutes of which the batch has samples, each made anew from window and batch: rows of
    `ProcessingMinute`."""
    counted = map_parts(parts, partial(_count_minutes, consumed), _MINUTES)
    minutes = counted.groupBy("queue_id", "at").agg(
        f.max("is_new").alias("is_new"),
        *(f.sum(name).alias(name) for name in COUNTS),
        added(map(f.col, _BUCKETS)).alias("buckets"),
    )
    return with_percentiles(touched(minutes), "buckets", PROCESSING_BOUNDS_MS, "p{}_ms")


def letter_trend(parts: DataFrame, consumed: SampleFiles) -> DataFrame:
    """How many letters of each error the samples tell of, by the hour: to be added to the rows of `DeadLetterTrend`."""
    counted = map_parts(parts, partial(_count_letters, consumed), _LETTERS)
    return counted.groupBy("queue_id", "fingerprint", "at").agg(f.sum("letters").alias("letters"))


def _count_minutes(files: SampleFiles, parts: set[int]) -> Iterator[pa.RecordBatch]:
    pieces = read_once(files, CONSUMED_SAMPLES, (*COUNTS, *_HISTOGRAM), parts)
    return summed(map(_minutes, pieces), _MINUTES, ("queue_id", "at"), **_MINUTES_HOW)


def _minutes(rows: pa.Table) -> pa.Table:
    named = {name: rows[name] for name in ("queue_id", "is_new", *COUNTS)}
    table = pa.table({**named, "at": since(rows, MINUTE_US), **_bucket_columns(rows)})
    return grouped(table, ("queue_id", "at"), **_MINUTES_HOW)


def _count_letters(files: SampleFiles, parts: set[int]) -> Iterator[pa.RecordBatch]:
    pieces = read_once(files, CONSUMED_SAMPLES, ("letters.fingerprint", "letters.letters"), parts)
    return summed(map(_letters, pieces), _LETTERS, ("queue_id", "fingerprint", "at"), letters="sum")


def _letters(rows: pa.Table) -> pa.Table:
    hourly = rows.set_column(rows.schema.get_field_index("at"), "at", since(rows, HOUR_US))
    table = exploded(hourly, "letters", "queue_id", "at")
    return grouped(table, ("queue_id", "fingerprint", "at"), letters="sum")


def _bucket_columns(rows: pa.Table) -> dict[str, pa.Array]:
    """A column for each bucket. Those of a version that has other bounds than ours cannot be added to the rest, and are
    left out: nothing is there."""
    bounds, buckets = (rows[name].combine_chunks() for name in _HISTOGRAM)
    is_ours = pc.fill_null(pc.equal(pc.list_value_length(buckets), len(_BUCKETS)), fill_value=False)
    same = (pc.equal(_elements(bounds, is_ours, index), bound) for index, bound in enumerate(PROCESSING_BOUNDS_MS))
    is_ours = reduce(pc.and_, (pc.fill_null(one, fill_value=False) for one in same), is_ours)
    return {name: _elements(buckets, is_ours, index) for index, name in enumerate(_BUCKETS)}


def _elements(lists: pa.ListArray, wanted: pa.Array, index: int) -> pa.Array:
    """The element with this number of each list that is wanted, which has one; null of the others."""
    places = pc.add(lists.offsets[:-1], index)
    return lists.values.take(pc.if_else(wanted, places, pa.scalar(None, places.type)))
