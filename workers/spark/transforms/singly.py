"""A history sample by sample, for partitions of which columns do not tell: those that have more than one life, or may
have stopped, gone back or fallen behind."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from queueapi.choices import LagStatus
from workers.spark.transforms.figures import lag_seconds
from workers.spark.transforms.moments import SECOND_US
from workers.spark.transforms.options import LagOptions
from workers.spark.transforms.points import Point, lives
from workers.spark.transforms.series import Series, WorkLater
from workers.spark.transforms.status import judge

_MINUTE_S: Final = 60

Row = tuple[Any, ...]


def sampled_singly(options: LagOptions, since_us: int, series: Series) -> Iterator[Row]:
    """What each sample says since then: rows of `telling.SAMPLED`."""
    for life in lives(series.points, options.clock_skew_s):
        first = 0
        for index, (before, point) in enumerate(pairwise([life[0], *life])):
            if micros(point.at_s) < since_us:
                continue
            while life[first].at_s < point.at_s - options.window_s:
                first += 1
            ends_its_minute = index + 1 == len(life) or _minute(life[index + 1]) != _minute(point)
            yield (
                series.queue_id,
                micros(point.at_s),
                point.at_s in series.new_at_s,
                point.lag,
                lag_seconds(life, first, index),
                point.end - before.end,
                _consumed(before, point),
                status_then(options, life[first : index + 1], series.work).badness if ends_its_minute else None,
            )


def status_then(options: LagOptions, points: Sequence[Point], work: WorkLater) -> LagStatus:
    """At the last of the points, by what was said until then."""
    now_s = points[-1].at_s
    return judge(points, now_s, options, work.before(now_s + options.clock_skew_s)).status


def _consumed(before: Point, point: Point) -> int:
    """Nothing where the group went back. Where it committed for the first time nobody knows where it had begun."""
    if before.committed is None or point.committed is None:
        return 0
    return max(0, point.committed - before.committed)


def _minute(point: Point) -> int:
    return int(point.at_s // _MINUTE_S)


def micros(at_s: float) -> int:
    return round(at_s * SECOND_US)
