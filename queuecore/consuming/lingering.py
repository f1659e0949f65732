"""Handlers of one partition that overran their time and still run."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

from queuecore.consuming.attempt import Run
from queuecore.consuming.work import Work
from queuecore.messages import Record
from queuecore.submit.strategies import SubmitStrategy


@dataclass(frozen=True, slots=True)
class _Overrun:
    """A handler, its message, and until when others wait for it. Nothing of its lane may run beside it; where it is in
    none, others wait for it while they are suspect, and no longer than that."""

    run: Run
    until: float
    record: Record
    holds_lane: bool

    def is_past(self, now: float) -> bool:
        return self.run.is_over or (now >= self.until and not self.holds_lane)

    def is_stuck(self, now: float) -> bool:
        """Whether its lane has waited long enough."""
        return self.holds_lane and now >= self.until and not self.run.is_over


class Lingering:
    """For the thread that reads. True while there are any that were not found to be past."""

    def __init__(self) -> None:
        self._overruns: dict[Hashable, _Overrun] = {}

    def __bool__(self) -> bool:
        return bool(self._overruns)

    def add(self, work: Work, run: Run, until: float) -> None:
        lane = work if work.lane is None else work.lane
        self._overruns[lane] = _Overrun(run, until, work.record, holds_lane=work.lane is not None)

    def follow(self, submit: SubmitStrategy) -> None:
        """Lanes are others from now on."""
        self._overruns = {
            lane: replace(one, holds_lane=True)
            for one in self._overruns.values()
            if (lane := submit.lane_of(one.record)) is not None
        }

    def is_any(self, now: float) -> bool:
        return any(not one.is_past(now) for one in self._overruns.values())

    def lanes(self, now: float) -> set[Hashable]:
        """What has to wait. Those that are past are forgotten."""
        self._overruns = {lane: one for lane, one in self._overruns.items() if not one.is_past(now)}
        return set(self._overruns)

    def stuck(self, now: float) -> set[int]:
        """The offsets of those whose lanes have waited long enough."""
        return {one.record.offset for one in self._overruns.values() if one.is_stuck(now)}

    def next_until(self, now: float) -> float | None:
        """When the next of them is waited for no longer."""
        return min((one.until for one in self._overruns.values() if one.until > now), default=None)
