"""How a group gets on with a partition, and why: Burrow's rules on windows of time. ADR 29 says where we differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low
from typing import NamedTuple

from queueapi.choices import LagStatus
from workers.spark.transforms.figures import consumed_per_s, is_reset, lag_seconds, produced_per_s, recent
from workers.spark.transforms.options import LagOptions
from workers.spark.transforms.pace import Direction, direction
from workers.spark.transforms.points import Point, Work, went_back
from workers.spark.transforms.wording import duration, number, per_second


class Verdict(NamedTuple):
    """`reason` is one sentence that begins with the status."""

    status: LagStatus
    reason: str


@dataclass(frozen=True, slots=True)
class _Progress:
    """since_s  when the group last got on, or had nothing to do
    begun       false where that was before the first point
    gaps_s      how long it took, each time that something waited, until the group got on
    """

    since_s: float
    begun: bool
    gaps_s: tuple[float, ...]

    @property
    def rhythm_s(self) -> float | None:
        """The usual gap. None where there was but one, which may have been an exception."""
        return median_low(self.gaps_s) if len(self.gaps_s) > 1 else None


def judge(points: Sequence[Point], now_s: float, options: LagOptions, work: Sequence[Work] = ()) -> Verdict:
    """The status at `now_s`, from the points of the partition's present life that are in the window, at least one.

    `work` is what its consumer said of the same time: with it, one that tries in vain is told from one that is gone.
    """
    newest = points[-1]
    if newest.lag <= options.allowed_lag:
        return _ok(_nothing_waits(newest))
    if not _got_on(points, now_s - min(options.stop_after_s, options.stop_unknown_s), options.allowed_lag):
        progress = _progress(points, options.allowed_lag)
        patience_s = _patience_s(progress, options)
        if now_s - progress.since_s > patience_s:
            lately_s = now_s - min(patience_s, options.stop_unknown_s)
            if busy := _at_work(work, max(progress.since_s, lately_s)):
                return Verdict(LagStatus.STALL, _stalled(newest, progress, now_s, busy))
            if newest.lag > options.tiny_lag or newest.committed is None:
                return Verdict(LagStatus.STOP, _stopped(newest, progress, now_s))
    if (drop := _rewound(points)) is not None:
        return Verdict(LagStatus.REWIND, _gone_back(*drop, newest, now_s))
    return _pace(points, options)


def _got_on(points: Sequence[Point], since_s: float, allowed_lag: int) -> bool:
    """Whether the group did, or had nothing to do, since then: nobody has so little patience as to ask further. Mostly
    the last two points tell; a history is judged minute by minute, and `_progress` looks at the whole window."""
    for index in range(len(points) - 1, 0, -1):
        before, after = points[index - 1], points[index]
        if after.at_s < since_s:
            return False
        if after.committed != before.committed or (before.lag <= allowed_lag and before.at_s >= since_s):
            return True
    return False


def _patience_s(progress: _Progress, options: LagOptions) -> float:
    if progress.rhythm_s is not None:
        return max(options.stop_after_s, options.stop_gaps * progress.rhythm_s)
    return max(options.stop_unknown_s, 2 * max(progress.gaps_s, default=0.0))


def _at_work(work: Sequence[Work], since_s: float) -> list[Work]:
    return [one for one in work if one.at_s > since_s and one.commits + one.attempts]


def _progress(points: Sequence[Point], allowed_lag: int) -> _Progress:
    since_s, begun = points[0].at_s, False
    gaps: list[float] = []
    first_gap: list[float] = []
    for before, after in pairwise(points):
        if before.lag <= allowed_lag:
            since_s, begun = before.at_s, True
        if after.committed == before.committed:
            continue
        # Who was reset, or has just begun, says nothing of how often it commits.
        if not is_reset(before, after):
            # The first gap began before the window did, perhaps long before: the others tell more.
            (gaps if begun else first_gap).append(after.at_s - since_s)
        since_s, begun = after.at_s, True
    return _Progress(since_s, begun, tuple(gaps or first_gap))


def _rewound(points: Sequence[Point]) -> tuple[Point, Point] | None:
    """Before and after the group went back, where it is not yet again where it was."""
    furthest = max([-1 if point.committed is None else point.committed for point in points])
    if furthest < 0 or furthest == points[-1].committed:
        return None
    # Who is not as far as it once was went back from there, after the last time that it was there.
    return next(
        (before, after)
        for before, after in reversed(list(pairwise(points)))
        if before.committed == furthest and went_back(before, after)
    )


def _pace(points: Sequence[Point], options: LagOptions) -> Verdict:
    newest, behind_s = points[-1], lag_seconds(points)
    if behind_s is None:
        return _ok(f"{number(newest.lag)} waiting; too little is known yet to say more")
    standing = f"{number(newest.lag)} waiting, {duration(behind_s)} behind"
    if behind_s < options.warn_lag_s:
        return _ok(standing)
    match direction(points, _progress(points, options.allowed_lag).rhythm_s or 0.0, options):
        case None:
            return _ok(standing)
        case Direction.DOWN:
            return _ok(f"catching up; {standing}")
        case Direction.UP:
            return Verdict(LagStatus.WARN, f"WARN: falls behind; {standing}{_rates(points, options)}")
        case Direction.LEVEL:
            return Verdict(LagStatus.WARN, f"WARN: does not catch up; {standing}{_rates(points, options)}")


def _rates(points: Sequence[Point], options: LagOptions) -> str:
    lately = recent(points, options.warn_after_s)
    produced, consumed = produced_per_s(lately), consumed_per_s(lately)
    if produced is None or consumed is None:
        return ""
    return f"; {per_second(produced)} come, {per_second(consumed)} go"


def _ok(reason: str) -> Verdict:
    return Verdict(LagStatus.OK, f"OK: {reason}")


def _nothing_waits(newest: Point) -> str:
    if (ahead := newest.position - newest.end) > 0:
        return (
            f"nothing waits; the commit is {number(ahead)} beyond the end, as after the topic was made anew or cut: "
            "look whether what comes next is consumed"
        )
    return f"{number(newest.lag)} waiting, as may be" if newest.lag else "nothing waits"


def _stopped(newest: Point, progress: _Progress, now_s: float) -> str:
    silence = _long(progress, now_s)
    if newest.committed is None:
        return f"STOP: nothing is committed; {number(newest.lag)} waiting for {silence}"
    gap_s = progress.rhythm_s
    usually = f"; commits came every {duration(max(1.0, gap_s))}" if gap_s is not None else ""
    return f"STOP: no commit for {silence}{usually}; {number(newest.lag)} waiting"


def _stalled(newest: Point, progress: _Progress, now_s: float, busy: Sequence[Work]) -> str:
    attempts, failures = sum(one.attempts for one in busy), sum(one.failures for one in busy)
    how = "it commits the same again"
    if failures or not any(one.commits for one in busy):
        how = f"{number(failures)} of the last {number(attempts)} attempts failed"
    return f"STALL: at work, and no further for {_long(progress, now_s)}; {how}; {number(newest.lag)} waiting"


def _gone_back(before: Point, after: Point, newest: Point, now_s: float) -> str:
    ago = duration(now_s - after.at_s)
    if newest.committed is None:
        gone = f"the committed offset, {number(before.committed or 0)}, is gone since {ago}"
        return f"REWIND: {gone}; {number(newest.lag)} waiting"
    there = f"{number(before.committed or 0)} to {number(after.position)}"
    return f"REWIND: went back from {there} {ago} ago, now at {number(newest.committed)}; {number(newest.lag)} waiting"


def _long(progress: _Progress, now_s: float) -> str:
    return duration(now_s - progress.since_s) + ("" if progress.begun else " or longer")
