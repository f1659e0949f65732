"""A partition and its consumer, simulated: the same story as Burrow sees it and as we do."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from tests.unit.spark.burrow_oracle import BROKER_REFRESH_S, Commit
from tests.unit.spark.traces import point, worked
from workers.spark.transforms.points import Point, Work

STEP_S = 5


class Doing(Enum):
    """What a consumer does for a while."""

    KEEPS_UP = "keeps up"
    SLOW = "handles so many"
    STUCK = "tries, commits, and gets no further"
    GONE = "is gone"


@dataclass(frozen=True)
class Phase:
    """`handled` and `produced` in each step of five seconds; `back` is how far the group is sent back at the start."""

    doing: Doing
    steps: int
    produced: int = 0
    handled: int = 0
    back: int = 0


@dataclass
class Story:
    """What happened, as each of the two sees it."""

    commits: list[Commit] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)

    @property
    def now_s(self) -> float:
        return self.points[-1].at_s


def tell(phases: Iterable[Phase], commit_steps: int = 1) -> Story:
    """Play the phases; the consumer commits every so many steps, where it has something to commit or is stuck."""
    story, step, end, position = Story(), 0, 0, 0
    committed: int | None = None
    for phase in phases:
        position = max(0, position - phase.back)
        for _ in range(phase.steps):
            step += 1
            end += phase.produced
            position = _next(phase, position, end)
            if step * STEP_S % BROKER_REFRESH_S == 0:
                story.ends.append(end)
            is_due = step % commit_steps == 0 and phase.doing != Doing.GONE
            if is_due and (position != committed or phase.doing == Doing.STUCK):
                committed = position
                known_end = story.ends[-1] if story.ends else 0
                story.commits.append(Commit(step * STEP_S, committed, max(0, known_end - committed)))
                story.work.append(worked(step * STEP_S, commits=1, attempts=1))
            story.points.append(point(step * STEP_S, end, committed))
    return story


def _next(phase: Phase, position: int, end: int) -> int:
    match phase.doing:
        case Doing.KEEPS_UP:
            return end
        case Doing.SLOW:
            return min(end, position + phase.handled)
        case _:
            return position
