"""How far behind groups are: now, and minute by minute."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from workers.spark.schemas import CONSUMED_SAMPLES, OFFSET_SAMPLES
from workers.spark.transforms.arrow import map_parts
from workers.spark.transforms.minutes import touched
from workers.spark.transforms.options import Extent, LagOptions
from workers.spark.transforms.rollups import rolled_up, worst
from workers.spark.transforms.samples import NO_SAMPLES, SampleFiles, read_all
from workers.spark.transforms.series import POINT, WORK, Told, Works
from workers.spark.transforms.telling import CURRENT, LAG, tell


@dataclass(frozen=True, slots=True)
class LagFiles:
    """What lag is made of.

    samples   of the batch, and before it, as far back as `LagOptions.window_s`; what is older does not count, and what
              is in both counts once
    consumed  what consumers said in that time: without it none is said to STALL
    """

    samples: SampleFiles
    consumed: SampleFiles = NO_SAMPLES


def lag(
    parts: DataFrame, files: LagFiles, options: LagOptions | None = None, extent: Extent | None = None
) -> DataFrame:
    """What `current_lag` and `lag_history` choose from: one look at the samples does for both. `parts` has the numbers
    of those that are told of; a task of Spark's reads what its parts have."""
    function = partial(_tell_parts, files, options or LagOptions(), extent or Extent())
    return map_parts(parts, function, LAG)


def current_lag(known: DataFrame) -> DataFrame:
    """Where each partition of which the batch has samples stands at its newest one: rows of `LagCurrent`, but for
    `status_since`, which only who knows the row before can tell.

    A row is as of its newest sample, in the batch or in the window: samples that came late change nothing.
    """
    return known.where(f.col("partition").isNotNull()).select(*CURRENT.names)


def lag_history(known: DataFrame) -> DataFrame:
    """The minutes of which the batch has samples, each made anew from window and batch: rows of `LagMinute`."""
    sampled = known.where(f.col("partition").isNull())
    # What all partitions had at one moment, as they are sampled together; then the most of the minute.
    moments = sampled.groupBy("queue_id", "at").agg(
        f.sum("lag_messages").alias("lag_messages"),
        f.max("lag_seconds").alias("lag_seconds"),
        f.sum("produced").alias("produced"),
        f.sum("consumed").alias("consumed"),
        worst("status").alias("status"),
        f.sum("samples").alias("samples"),
        f.max("is_new").alias("is_new"),
    )
    minutes = rolled_up(moments, "minute", f.max("is_new").alias("is_new"))
    return touched(minutes)


def _tell_parts(files: LagFiles, options: LagOptions, extent: Extent, parts: set[int]) -> Iterator[pa.RecordBatch]:
    samples = _with_micros(read_all(files.samples, OFFSET_SAMPLES, POINT[1:], parts))
    if samples.num_rows:
        known = samples.select([*OFFSET_SAMPLES.place, *POINT, "is_new"]).combine_chunks()
        yield from tell(options, extent, Told(known, Works(partial(_work, files.consumed, parts))))


def _work(files: SampleFiles, parts: set[int]) -> pa.Table:
    rows = _with_micros(read_all(files, CONSUMED_SAMPLES, ("commits", "succeeded", "failed", "timed_out"), parts))
    failures = pc.add(rows["failed"], rows["timed_out"])
    rows = rows.append_column("attempts", pc.add(rows["succeeded"], failures)).append_column("failures", failures)
    return rows.select([*CONSUMED_SAMPLES.place, *WORK])


def _with_micros(rows: pa.Table) -> pa.Table:
    return rows.append_column("at_us", rows["at"].cast(pa.int64()))
