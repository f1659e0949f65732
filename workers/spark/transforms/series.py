"""Frames of samples handed to a plain function, partition by partition, each in order of time.

One shuffle and one sort, which Spark can spill, and Python sees the rows of one partition at a time: a batch may hold
any number of samples. So what a partition's figures are is written, and tested, without Spark.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from workers.spark.transforms.arrow import map_in_arrow
from workers.spark.transforms.points import Point, Work

_KEY: Final = ("queue_id", "partition")
_ROWS_PER_BATCH: Final = 5_000
_NEVER_S: Final = 1e12

Row = tuple[Any, ...]
_key = itemgetter(0, 1)
# Where in a row of the frame that Python is given something is; the last is `batch_since_s`.
_AT, _END, _IS_NEW = 2, 7, 9
_POINT, _DONE = slice(2, 9), slice(10, 13)


class Series(NamedTuple):
    """What is known of one partition, oldest first.

    new_at_s       the times of what came with the batch
    batch_since_s  the oldest time in the batch, of whatever partition
    """

    queue_id: str
    partition: int
    points: list[Point]
    work: list[Work]
    new_at_s: frozenset[float]
    batch_since_s: float


def each_partition(
    function: Callable[[Series], Iterable[Row]],
    schema: pa.Schema,
    samples: DataFrame,
    window: DataFrame,
    consumed: DataFrame | None,
) -> DataFrame:
    """What the function makes of each partition: rows of the schema. It is sent to Spark's Python processes, so it is
    one that they can import."""
    rows = _points(samples, is_new=True).unionByName(_points(window, is_new=False))
    if consumed is not None:
        rows = rows.unionByName(_work(consumed), allowMissingColumns=True)
    since_s = f.coalesce(f.min(_seconds("at")), f.lit(_NEVER_S)).alias("batch_since_s")
    rows = rows.crossJoin(f.broadcast(samples.agg(since_s)))
    ordered = rows.repartition(*_KEY).sortWithinPartitions(*_KEY, "at_s", "end_offset", "committed_offset")
    return map_in_arrow(ordered, partial(_apply, function, schema), schema)


def lately(samples: DataFrame, consumed: DataFrame, seconds: float) -> tuple[DataFrame, DataFrame]:
    """What there is of each partition in its last seconds before its newest sample: what comes of a long time can be
    judged by its end, and would else all be handed to Python."""
    newest = f.broadcast(samples.groupBy(*_KEY).agg(f.max("at").alias("newest_at")))
    is_late = f.unix_micros("newest_at") - f.unix_micros("at") <= int(seconds * 1_000_000)
    late, work = (frame.join(newest, list(_KEY)).where(is_late).drop("newest_at") for frame in (samples, consumed))
    return late, work


def _points(samples: DataFrame, *, is_new: bool) -> DataFrame:
    return samples.select(
        *_KEY,
        _seconds("at").alias("at_s"),
        "service_id",
        "topic",
        "group",
        "beginning_offset",
        "end_offset",
        "committed_offset",
        f.lit(is_new).alias("is_new"),
        *(f.lit(None).cast("long").alias(name) for name in Work._fields[1:]),
    )


def _work(consumed: DataFrame) -> DataFrame:
    return consumed.select(
        *_KEY,
        _seconds("at").alias("at_s"),
        "commits",
        (f.col("succeeded") + f.col("failed") + f.col("timed_out")).alias("attempts"),
        (f.col("failed") + f.col("timed_out")).alias("failures"),
    )


def _seconds(time: str) -> Column:
    return f.unix_micros(time) / 1_000_000


def _apply(
    function: Callable[[Series], Iterable[Row]], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    made = (row for series in _series(batches) for row in function(series))
    while some := list(islice(made, _ROWS_PER_BATCH)):
        columns = zip(zip(*some, strict=True), schema.types, strict=True)
        yield pa.record_batch([pa.array(values, kind) for values, kind in columns], schema=schema)


def _series(batches: Iterable[pa.RecordBatch]) -> Iterator[Series]:
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for (queue_id, partition), group in groupby(rows, key=_key):
        points, work, new, since_s = list[Point](), list[Work](), set[float](), 0.0
        for row in group:
            if row[_END] is None:
                work.append(Work(row[_AT], *row[_DONE]))
                continue
            # Without the call of the class that a named tuple makes: there are millions of them.
            points.append(tuple.__new__(Point, row[_POINT]))
            if row[_IS_NEW]:
                new.add(row[_AT])
            since_s = row[-1]
        if points:
            yield Series(queue_id, partition, points, work, frozenset(new), since_s)
