"""Percentiles of counts by buckets: each bucket has an upper bound, and the last has none."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

PERCENTILES: Final = (50, 95, 99)
_COUNTED: Final = "counted_up_to"


def summed(buckets: str, bounds: str, expected: Sequence[float]) -> Column:
    """The buckets of a group of rows together, one by one. Those of a version that has other bounds than the expected
    cannot be added to the rest, and are left out."""
    known = usable(buckets, bounds, expected)
    return added(f.get(known, f.lit(index)) for index in range(len(expected) + 1))


def usable(buckets: str, bounds: str, expected: Sequence[float]) -> Column:
    """The buckets of a row, null where they have other bounds."""
    return f.when(f.col(bounds).cast("array<double>") == _array(expected), f.col(buckets))


def added(buckets: Iterable[Column]) -> Column:
    """The buckets of a group of rows together, where each is a column."""
    return f.array(*(f.coalesce(f.sum(one), f.lit(0).cast("long")) for one in buckets))


def with_percentiles(rows: DataFrame, buckets: str, bounds: Sequence[float], name: str) -> DataFrame:
    """Below what so many percent were: within a bucket, they are taken to lie evenly. The last bound where it is beyond
    that, as nobody knows how far; null where nothing was counted."""
    counted = rows.withColumn(_COUNTED, _counted_up_to(buckets))
    told = {name.format(one): _percentile(buckets, bounds, one) for one in PERCENTILES}
    return counted.withColumns(told).drop(_COUNTED)


def _counted_up_to(buckets: str) -> Column:
    """How many are in the first bucket, the first two, and so on; before these nothing. Summed up once for all
    percentiles: each step in an array takes Java as long as much of the rest."""
    return f.aggregate(
        f.col(buckets),
        f.array(f.lit(0).cast("long")),
        lambda counted, count: f.concat(counted, f.array(f.element_at(counted, -1) + count)),
    )


def _percentile(buckets: str, bounds: Sequence[float], percent: float) -> Column:
    counted = f.col(_COUNTED)
    wanted = f.element_at(counted, -1) * f.lit(percent / 100)
    # Of those with so many or more the first is in question, and what is counted before it is smaller.
    index = f.size(f.filter(counted, lambda count: count < wanted)) - 1
    low, high = f.get(_array([0.0, *bounds]), index), f.get(_array(bounds), index)
    inside = low + (high - low) * (wanted - f.get(counted, index)) / f.get(f.col(buckets), index)
    return f.when(wanted > 0, f.coalesce(inside, f.lit(float(bounds[-1]))))


def percentile_of(buckets: Sequence[int], bounds: Sequence[float], percent: float) -> float | None:
    """The same of counts that are at hand."""
    counted_up_to = list(accumulate(buckets))
    wanted = counted_up_to[-1] * (percent / 100)
    if not wanted:
        return None
    index = bisect_left(counted_up_to, wanted)
    if index == len(bounds):
        return float(bounds[-1])
    before = counted_up_to[index - 1] if index else 0
    low, high = [0.0, *bounds][index], bounds[index]
    return low + (high - low) * (wanted - before) / buckets[index]


def _array(bounds: Sequence[float]) -> Column:
    return f.array(*(f.lit(float(bound)) for bound in bounds))
