"""Frames of samples handed to a plain function, all of a partition's to one call of it.

One shuffle, by Spark; Arrow sorts what came of it. So what a partition's figures are is written, and tested, without
Spark.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from workers.spark.transforms.arrow import map_in_arrow
from workers.spark.transforms.points import Point, Work

KEY: Final = ("queue_id", "partition")
_POINT: Final = ("at_us", "service_id", "topic", "group", "beginning_offset", "end_offset", "committed_offset")
_WORK: Final = ("at_us", *Work._fields[1:])
_SECOND_US: Final = 1_000_000

Name = tuple[str, int]
_name = itemgetter(0, 1)


class Series(NamedTuple):
    """What is known of one partition, oldest first. `new_at_s` has the times of what came with the batch."""

    queue_id: str
    partition: int
    points: list[Point]
    work: list[Work]
    new_at_s: frozenset[float]


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of some partitions, in any order: samples of their offsets, and what their consumers said."""

    samples: pa.Table
    work: "Works"


class Works:
    """What consumers said, for those partitions of which it is asked: mostly none."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows.sort_by([(name, "ascending") for name in (*KEY, "at_us")])
        self._bounds: dict[Name, tuple[int, int]] | None = None

    def of(self, name: Name) -> list[Work]:
        """In order of time."""
        if self._bounds is None:
            names = enumerate(zip(*(self._rows[one].to_pylist() for one in KEY), strict=True))
            groups = ((name, list(group)) for name, group in groupby(names, key=itemgetter(1)))
            self._bounds = {name: (group[0][0], len(group)) for name, group in groups}
        rows = self._rows.slice(*self._bounds.get(name, (0, 0)))
        columns = [rows[one].to_pylist() for one in _WORK]
        return [Work(at / _SECOND_US, *rest) for at, *rest in zip(*columns, strict=True)]


def each_part(
    function: Callable[[Told], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    samples: DataFrame,
    window: DataFrame,
    consumed: DataFrame | None,
) -> DataFrame:
    """What the function makes of all partitions, some of them at a time: rows of the schema. It is sent to Spark's
    Python processes, so it is one that they can import."""
    rows = _points(samples, is_new=True).unionByName(_points(window, is_new=False))
    if consumed is not None:
        rows = rows.unionByName(_work(consumed), allowMissingColumns=True)
    return map_in_arrow(rows.repartition(*KEY), partial(_apply, function), schema)


def _points(samples: DataFrame, *, is_new: bool) -> DataFrame:
    return samples.select(
        *KEY,
        _micros("at").alias("at_us"),
        "service_id",
        "topic",
        "group",
        "beginning_offset",
        "end_offset",
        "committed_offset",
        f.lit(is_new).alias("is_new"),
        *(f.lit(None).cast("long").alias(name) for name in _WORK[1:]),
    )


def _work(consumed: DataFrame) -> DataFrame:
    return consumed.select(
        *KEY,
        _micros("at").alias("at_us"),
        "commits",
        (f.col("succeeded") + f.col("failed") + f.col("timed_out")).alias("attempts"),
        (f.col("failed") + f.col("timed_out")).alias("failures"),
    )


def _micros(time: str) -> Column:
    return f.unix_micros(time)


def _apply(
    function: Callable[[Told], Iterator[pa.RecordBatch]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    gathered = list(batches)
    if not gathered:
        return
    rows = pa.Table.from_batches(gathered)
    is_point = pc.is_valid(rows["end_offset"])
    samples = rows.filter(is_point).select([*KEY, *_POINT, "is_new"]).combine_chunks()
    work = rows.filter(pc.invert(is_point)).select([*KEY, *_WORK]).combine_chunks()
    if samples.num_rows:
        yield from function(Told(samples, Works(work)))


def all_series(samples: pa.Table, works: Works) -> Iterator[Series]:
    """Samples that are in order, as rows."""
    columns = [samples[name].to_pylist() for name in (*KEY, *_POINT[1:])]
    at_s = pc.divide(samples["at_us"].cast(pa.float64()), float(_SECOND_US)).to_pylist()
    points = map(tuple.__new__, _ever(Point), zip(at_s, *columns[len(KEY) :], strict=True))
    rows = zip(*columns[: len(KEY)], points, samples["is_new"].to_pylist(), strict=True)
    for (queue_id, partition), group in groupby(rows, key=_name):
        known = [row[2:] for row in group]
        new = frozenset(point.at_s for point, is_new in known if is_new)
        yield Series(queue_id, partition, [point for point, _ in known], works.of((queue_id, partition)), new)


def _ever(value: Any) -> Iterator[Any]:
    while True:
        yield value
