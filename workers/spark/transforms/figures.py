"""A partition's figures, from the points of its present life. Each function says when it knows nothing: None."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from workers.spark.transforms.points import Point, went_back

# What produced rates say of the time before the first point is a guess: none goes further back than a day.
LONGEST_LAG_S: Final = 86_400.0
# Who would need longer than a month to catch up does not.
LONGEST_ETA_S: Final = 30 * 86_400.0

_end = attrgetter("end")
_at = attrgetter("at_s")


def lag_seconds(points: Sequence[Point], first: int = 0, last: int = -1) -> float | None:
    """How long before `points[last]` the log ended where the group was then: 0 where nothing waited. The points from
    `first` on tell, and one alone does not.

    Where the group is before all of them, the rate at which messages came is taken to have been the same before, and
    on an idle topic it is at least as long as the points reach back.
    """
    last %= len(points)
    now = points[last]
    if now.lag == 0:
        return 0.0
    if first == last:
        return None
    # Where the end stood still at this offset, the next message came only after that.
    index = bisect_right(points, now.position, first, last + 1, key=_end)
    return max(0.0, now.at_s - _when(points, now.position, index, first, last))


def oldest_age_s(points: Sequence[Point]) -> float | None:
    """How old the oldest message is that waits and is still stored; None where there is none, or one point alone."""
    now = points[-1]
    oldest = max(now.position, now.beginning)
    if oldest >= now.end or len(points) == 1:
        return None
    index = bisect_left(points, oldest + 1, key=_end)
    return max(0.0, now.at_s - _when(points, oldest + 1, index, 0, len(points) - 1))


def produced_per_s(points: Sequence[Point]) -> float | None:
    return _per_s(points[0], points[-1], points[0].end, points[-1].end)


def consumed_per_s(points: Sequence[Point]) -> float | None:
    """Since the group last went back, or first committed. Who was sent forward has consumed what it skipped: samples do
    not tell the two apart."""
    steady = since_last_reset(points)
    return _per_s(steady[0], steady[-1], steady[0].committed, steady[-1].committed)


def trend_per_s(points: Sequence[Point]) -> float | None:
    """The slope of the lag since the group last went back, by least squares: where commits come in steps, two points
    alone would tell where in its step each was."""
    steady = since_last_reset(points)
    if len(steady) < 2:
        return None
    mean_at = sum(point.at_s for point in steady) / len(steady)
    mean_lag = sum(point.lag for point in steady) / len(steady)
    return sum((point.at_s - mean_at) * (point.lag - mean_lag) for point in steady) / sum(
        (point.at_s - mean_at) ** 2 for point in steady
    )


def drain_eta_s(lag: int, trend: float | None) -> float | None:
    """When nothing waits any more, if all goes on like this. None: never, or in more than a month."""
    if lag == 0:
        return 0.0
    if trend is None or trend >= 0 or lag > -trend * LONGEST_ETA_S:
        return None
    return lag / -trend


def recent(points: Sequence[Point], seconds: float) -> Sequence[Point]:
    """Those of the last seconds before the newest."""
    return points[bisect_left(points, points[-1].at_s - seconds, key=_at) :]


def since_last_reset(points: Sequence[Point]) -> Sequence[Point]:
    """Those since the group last went back, lost its offset, or committed for the first time."""
    start = len(points) - 1
    while start > 0 and not is_reset(points[start - 1], points[start]):
        start -= 1
    return points[start:]


def is_reset(before: Point, after: Point) -> bool:
    return went_back(before, after) or (before.committed is None and after.committed is not None)


def _when(points: Sequence[Point], offset: int, index: int, first: int, last: int) -> float:
    """When the end was at the offset, which is before `points[index]` and not before the one in front of that."""
    if index > first:
        before, after = points[index - 1], points[index]
        return before.at_s + (offset - before.end) / (after.end - before.end) * (after.at_s - before.at_s)
    oldest, newest = points[first], points[last]
    rate = _per_s(oldest, newest, oldest.end, newest.end)
    return oldest.at_s - (min(LONGEST_LAG_S, (oldest.end - offset) / rate) if rate else 0.0)


def _per_s(first: Point, last: Point, before: int | None, after: int | None) -> float | None:
    if before is None or after is None or last.at_s <= first.at_s:
        return None
    return (after - before) / (last.at_s - first.at_s)
