"""How far behind groups are: now, and minute by minute."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from workers.spark.transforms.minutes import touched
from workers.spark.transforms.options import Extent, LagOptions
from workers.spark.transforms.rollups import rolled_up, worst
from workers.spark.transforms.series import each_part
from workers.spark.transforms.telling import CURRENT, LAG, tell


def lag(
    samples: DataFrame,
    window: DataFrame,
    options: LagOptions | None = None,
    consumed: DataFrame | None = None,
    extent: Extent | None = None,
) -> DataFrame:
    """What `current_lag` and `lag_history` choose from: one look at the samples does for both.

    `window` has the samples before the batch, as far back as `options.window_s`; what is older does not count, and what
    is in both counts once. `consumed` has what consumers said in that time: without it none is said to STALL.
    """
    return each_part(partial(tell, options or LagOptions(), extent or Extent()), LAG, samples, window, consumed)


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
