"""Whether a lag rises or falls, however it wobbles."""

from collections.abc import Sequence
from enum import Enum

from workers.spark.transforms.figures import lag_seconds, produced_per_s
from workers.spark.transforms.options import LagOptions
from workers.spark.transforms.points import Point


class Direction(Enum):
    UP = "up"
    LEVEL = "level"
    DOWN = "down"


def direction(points: Sequence[Point], rhythm_s: float, options: LagOptions) -> Direction | None:
    """Where the lag goes since the group last caught up; None where that was lately, or it is hardly behind.

    Who commits in steps is high and low by turns: of each step of time only the lowest lag counts. The direction turns
    when the lag has come a part of it away from its last extreme, and so stays what it is while the lag wobbles.
    """
    now_s = points[-1].at_s
    step_s = max(options.warn_after_s / 2, 2 * rhythm_s)
    lows = _lows(_since_caught_up(points, options), now_s, step_s)
    if len(lows) < 2 or not _is_behind(points, now_s - step_s, options.warn_lag_s):
        return None
    smallest = (produced_per_s(points) or 0.0) * options.warn_lag_s / 2
    if _is_falling(lows, options.turn, smallest):
        return Direction.DOWN
    return Direction.UP if lows[-1] > lows[-2] else Direction.LEVEL


def _since_caught_up(points: Sequence[Point], options: LagOptions) -> Sequence[Point]:
    floor = max(options.allowed_lag, options.tiny_lag)
    return points[1 + max((index for index, point in enumerate(points) if point.lag <= floor), default=-1) :]


def _lows(points: Sequence[Point], now_s: float, step_s: float) -> list[int]:
    """The lowest lag in each step of time until now, oldest first; none of a step that is known only in part."""
    lows: dict[int, int] = {}
    for point in points:
        step = int((now_s - point.at_s) // step_s)
        lows[step] = min(point.lag, lows.get(step, point.lag))
    whole = int((now_s - points[0].at_s) // step_s) if points else 0
    return [low for step, low in sorted(lows.items(), reverse=True) if step < whole]


def _is_behind(points: Sequence[Point], since_s: float, seconds: float) -> bool:
    """Whether it was by so many seconds, at each point since then."""
    late = (index for index, point in enumerate(points) if point.at_s >= since_s)
    return all((lag_seconds(points, 0, index) or 0.0) >= seconds for index in late)


def _is_falling(lows: Sequence[int], turn: float, smallest: float) -> bool:
    falling, lowest, highest = False, lows[0], lows[0]
    for low in lows:
        lowest, highest = min(lowest, low), max(highest, low)
        if not falling and highest - low > max(smallest, turn * highest):
            falling, lowest = True, low
        elif falling and low - lowest > max(smallest, turn * lowest):
            falling, highest = False, low
    return falling
