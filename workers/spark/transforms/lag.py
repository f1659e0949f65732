"""How far behind groups are: now, and minute by minute."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from workers.spark.transforms.figures import (
    consumed_per_s,
    drain_eta_s,
    lag_seconds,
    oldest_age_s,
    produced_per_s,
    recent,
    trend_per_s,
)
from workers.spark.transforms.minutes import touched
from workers.spark.transforms.options import LagOptions
from workers.spark.transforms.points import Point, Work, lives
from workers.spark.transforms.rollups import rolled_up, worst
from workers.spark.transforms.series import Row, Series, each_partition, lately
from workers.spark.transforms.status import judge

_MINUTE_S: Final = 60

_TIME: Final = pa.timestamp("us", tz="UTC")
_CURRENT: Final = pa.schema(
    [
        ("queue_id", pa.string()),
        ("partition", pa.int32()),
        ("topic", pa.string()),
        ("consumer_group", pa.string()),
        ("end_offset", pa.int64()),
        ("committed_offset", pa.int64()),
        ("lag_messages", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("produced_per_s", pa.float64()),
        ("consumed_per_s", pa.float64()),
        ("trend_per_s", pa.float64()),
        ("drain_eta_s", pa.float64()),
        ("oldest_age_s", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("as_of", _TIME),
    ]
)
# One sample of one partition. The status is that of its minute, and stands with the last sample of it.
_SAMPLED: Final = pa.schema(
    [
        ("queue_id", pa.string()),
        ("at", _TIME),
        ("is_new", pa.bool_()),
        ("lag_messages", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("produced", pa.int64()),
        ("consumed", pa.int64()),
        ("status", pa.string()),
    ]
)

_at = attrgetter("at_s")


def current_lag(
    samples: DataFrame, window: DataFrame, options: LagOptions | None = None, consumed: DataFrame | None = None
) -> DataFrame:
    """Where each partition of which the batch has samples stands at its newest one: rows of `LagCurrent`, but for
    `status_since`, which only who knows the row before can tell.

    `window` has the samples before the batch, as far back as `options.window_s`; what is older does not count, and what
    is in both counts once. `consumed` has what consumers said in that time: without it none is said to STALL. A row is
    as of its newest sample, in the batch or in the window: samples that came late change nothing.
    """
    return each_partition(partial(_current, options or LagOptions()), _CURRENT, samples, window, consumed)


def current_lag_of_long(samples: DataFrame, window: DataFrame, options: LagOptions, consumed: DataFrame) -> DataFrame:
    """The same rows, for a batch of a much longer time than `options.window_s`."""
    # Clocks may differ: what ends a partition's life may be that much newer, and so may what is left out.
    seconds = options.window_s + 2 * options.clock_skew_s
    late, work = lately(samples, consumed, seconds)
    return current_lag(late, window, options, work)


def lag_history(
    samples: DataFrame,
    window: DataFrame,
    options: LagOptions | None = None,
    consumed: DataFrame | None = None,
) -> DataFrame:
    """The minutes of which the batch has samples, each made anew from window and batch: rows of `LagMinute`."""
    sampled = each_partition(partial(_sampled, options or LagOptions()), _SAMPLED, samples, window, consumed)
    # What all partitions had at one moment, as they are sampled together; then the most of the minute.
    moments = sampled.groupBy("queue_id", "at").agg(
        f.sum("lag_messages").alias("lag_messages"),
        f.max("lag_seconds").alias("lag_seconds"),
        f.sum("produced").alias("produced"),
        f.sum("consumed").alias("consumed"),
        worst("status").alias("status"),
        f.count("*").alias("samples"),
        f.max("is_new").alias("is_new"),
    )
    minutes = rolled_up(moments, "minute", f.max("is_new").alias("is_new"))
    return touched(minutes)


def _current(options: LagOptions, series: Series) -> Iterator[Row]:
    if not series.new_at_s:
        return
    points = recent(lives(series.points, options.clock_skew_s)[-1], options.window_s)
    newest, lately = points[-1], recent(points, options.rate_window_s)
    trend = trend_per_s(lately)
    verdict = judge(points, newest.at_s, options, series.work)
    yield (
        series.queue_id,
        series.partition,
        newest.topic,
        newest.group,
        newest.end,
        newest.committed,
        newest.lag,
        lag_seconds(points),
        produced_per_s(lately),
        consumed_per_s(lately),
        trend,
        drain_eta_s(newest.lag, trend),
        oldest_age_s(points),
        verdict.status.value,
        verdict.reason,
        _micros(newest.at_s),
    )


def _sampled(options: LagOptions, series: Series) -> Iterator[Row]:
    for life in lives(series.points, options.clock_skew_s):
        yield from _of_life(options, series, life)


def _of_life(options: LagOptions, series: Series, life: list[Point]) -> Iterator[Row]:
    """Of the minutes since the batch's first: it can have nothing of those before."""
    first, since_s = 0, series.batch_since_s // _MINUTE_S * _MINUTE_S
    for index, (before, point) in enumerate(pairwise([life[0], *life])):
        if point.at_s < since_s:
            continue
        while life[first].at_s < point.at_s - options.window_s:
            first += 1
        ends_its_minute = index + 1 == len(life) or _minute(life[index + 1]) != _minute(point)
        yield (
            series.queue_id,
            _micros(point.at_s),
            point.at_s in series.new_at_s,
            point.lag,
            lag_seconds(life, first, index),
            point.end - before.end,
            _consumed(before, point),
            _status(options, life[first : index + 1], series.work) if ends_its_minute else None,
        )


def _status(options: LagOptions, points: Sequence[Point], work: Sequence[Work]) -> str:
    now_s = points[-1].at_s
    until_then = work[: bisect_left(work, now_s + options.clock_skew_s, key=_at)]
    return judge(points, now_s, options, until_then).status.value


def _consumed(before: Point, point: Point) -> int:
    """Nothing where the group went back. Where it committed for the first time nobody knows where it had begun."""
    if before.committed is None or point.committed is None:
        return 0
    return max(0, point.committed - before.committed)


def _minute(point: Point) -> int:
    return int(point.at_s // _MINUTE_S)


def _micros(at_s: float) -> int:
    return round(at_s * 1_000_000)
