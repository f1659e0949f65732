"""Our status beside Burrow's, over generated stories: they agree, but for the decisions listed here and in ADR 29."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queueapi.choices import LagStatus
from tests.unit.spark.burrow_oracle import INTERVALS, Commit, burrow_status, has_rewound, has_stopped, was_at_the_end
from tests.unit.spark.simulated import STEP_S, Doing, Phase, Story, tell
from workers.spark.transforms.options import LagOptions
from workers.spark.transforms.points import Point
from workers.spark.transforms.status import judge

OK, WARN, STOP, STALL, REWIND = LagStatus.OK, LagStatus.WARN, LagStatus.STOP, LagStatus.STALL, LagStatus.REWIND
KEEPS_UP, SLOW, STUCK, GONE = Doing.KEEPS_UP, Doing.SLOW, Doing.STUCK, Doing.GONE

OPTIONS = LagOptions()

# What stories are made of by chance: how many come in a step, what part is handled, how far a group is sent back.
AMOUNTS = (0, 1, 10, 100, 1000)
PACES = (0.0, 0.3, 0.9, 1.0, 1.1, 2.0, 5.0)
BACK = (0, 0, 0, 50, 500)
SEED = 1


@dataclass(frozen=True)
class Facts:
    """What is true of a story, found without the rules of either side."""

    story: Story
    commit_steps: int

    @cached_property
    def points(self) -> Sequence[Point]:
        return [one for one in self.story.points if one.at_s >= self.story.now_s - OPTIONS.window_s]

    @property
    def ring(self) -> Sequence[Commit]:
        return self.story.commits[-INTERVALS:]

    @property
    def lag(self) -> int:
        return self.points[-1].lag

    @property
    def stuck_s(self) -> float:
        """Since when the group is where it is, though something waits."""
        moved = [after.at_s for before, after in pairwise(self.points) if after.committed != before.committed]
        idle = [one.at_s for one in self.points if one.lag == 0]
        return self.story.now_s - max(*moved, *idle, self.points[0].at_s, 0.0)

    @property
    def is_soon(self) -> bool:
        """Not longer than two minutes, or a few times the longest time that anything took to be committed."""
        moved = [self.points[0].at_s]
        moved += [after.at_s for before, after in pairwise(self.points) if after.committed != before.committed]
        longest = max((after - before for before, after in pairwise(moved)), default=0.0)
        return self.stuck_s <= max(120, 4 * longest)

    @property
    def behind_s(self) -> float:
        """Since when what comes next is stored."""
        stored = next((one.at_s for one in self.story.points if one.end > self.points[-1].position), self.story.now_s)
        return self.story.now_s - stored

    @property
    def commits_lately(self) -> bool:
        return any(one.at_s > self.story.now_s - 120 for one in self.story.commits)

    def low(self, from_s: float, to_s: float) -> int | None:
        """The lowest lag between so many seconds ago."""
        now_s = self.story.now_s
        return min((one.lag for one in self.points if now_s - from_s < one.at_s <= now_s - to_s), default=None)

    @property
    def caught_up_lately(self) -> bool:
        low = self.low(2 * self._step_s + STEP_S, 0)
        return self.points[0].at_s > self.story.now_s - 2 * self._step_s or low is None or low <= 1

    @property
    def falls(self) -> bool:
        """By a tenth from what it was at its most."""
        return self.lag < 0.95 * max(one.lag for one in self.points)

    @property
    def fell_at_once(self) -> bool:
        """By more than a tenth, and more than comes in a quarter of a minute, within the last two steps."""
        before, since = self.low(2 * self._step_s, self._step_s), self.low(self._step_s, 0)
        if before is None or since is None:
            return False
        rate = (self.points[-1].end - self.points[0].end) / max(STEP_S, self.story.now_s - self.points[0].at_s)
        return before - since > max(0.1 * before, 15 * rate) * 1.5

    @property
    def _step_s(self) -> float:
        return max(60, 2 * self.commit_steps * STEP_S)


@dataclass(frozen=True)
class Decision:
    """One class of stories of which we say something else than Burrow, on purpose."""

    name: str
    burrow: frozenset[LagStatus]
    ours: frozenset[LagStatus]
    holds: Callable[[Facts], bool]
    story: tuple[Phase, ...]
    commit_steps: int = 1


def among(*statuses: LagStatus) -> frozenset[LagStatus]:
    return frozenset(statuses)


DECISIONS = (
    Decision(
        "a group that never committed is there, and stands still",
        among(OK),
        among(STOP, WARN),
        lambda facts: not facts.story.commits,
        story=(Phase(GONE, 30, produced=10),),
    ),
    Decision(
        "one commit, or a few in short order, do not make the next one late",
        among(STOP),
        among(OK, WARN, REWIND),
        lambda facts: facts.is_soon,
        story=(Phase(SLOW, 2, produced=100, handled=10), Phase(GONE, 3, produced=100)),
    ),
    Decision(
        "nor do ten commits of the same offset in a few seconds make a stall",
        among(STALL),
        among(OK, WARN, REWIND),
        lambda facts: facts.is_soon,
        story=(Phase(SLOW, 20, produced=100, handled=95), Phase(STUCK, 11, produced=100)),
    ),
    Decision(
        "who commits every 20 s has stopped after 80 s, not after nine times 20 s",
        among(OK, WARN, STALL, REWIND),
        among(STOP),
        lambda facts: bool(facts.ring) and facts.stuck_s > 60 and not has_stopped(facts.ring, facts.story.now_s),
        story=(Phase(SLOW, 60, produced=10, handled=3), Phase(GONE, 24, produced=10)),
        commit_steps=4,
    ),
    Decision(
        "who was at the end a while ago, and whom messages wait for since, has stopped",
        among(OK, WARN, STALL, REWIND),
        among(STOP),
        lambda facts: (
            bool(facts.ring) and facts.stuck_s > 60 and was_at_the_end(facts.ring, facts.story.ends[-INTERVALS:])
        ),
        story=(Phase(KEEPS_UP, 40, produced=10), Phase(GONE, 14, produced=10)),
    ),
    Decision(
        "who tries in vain stalls after a time, not after ten commits",
        among(OK, WARN, REWIND),
        among(STALL),
        lambda facts: facts.stuck_s > 60 and facts.commits_lately,
        story=(Phase(KEEPS_UP, 40, produced=100), Phase(STUCK, 28, produced=100)),
        commit_steps=4,
    ),
    Decision(
        "who tried a moment ago is not gone yet",
        among(STOP),
        among(STALL),
        lambda facts: facts.stuck_s > 60 and facts.commits_lately,
        story=(Phase(STUCK, 26, produced=100), Phase(GONE, 15)),
    ),
    Decision(
        "who went back is not where it was, however often it commits meanwhile",
        among(OK, WARN),
        among(REWIND),
        lambda facts: not has_rewound(facts.ring),
        story=(Phase(KEEPS_UP, 40, produced=100), Phase(SLOW, 16, produced=10, handled=3, back=500)),
    ),
    Decision(
        "who went back longer ago than the window is judged by what it does since",
        among(REWIND),
        among(OK, WARN),
        lambda facts: not has_rewound([one for one in facts.ring if one.at_s >= facts.story.now_s - OPTIONS.window_s]),
        story=(
            Phase(KEEPS_UP, 8, produced=100),
            Phase(SLOW, 4, produced=10, handled=3, back=500),
            Phase(GONE, 110, produced=10),
            Phase(SLOW, 20, produced=10, handled=3),
        ),
        commit_steps=4,
    ),
    Decision(
        "a few seconds behind is nothing to warn of, nor is it right after having caught up",
        among(WARN),
        among(OK),
        lambda facts: facts.behind_s < 30 + 2 * facts._step_s or facts.caught_up_lately,
        story=(Phase(SLOW, 40, produced=1000, handled=990),),
        commit_steps=2,
    ),
    Decision(
        "a lag that has fallen by a tenth is being caught up, though it stands still for ten commits",
        among(WARN),
        among(OK),
        lambda facts: facts.falls,
        story=(Phase(GONE, 20, produced=1000), Phase(SLOW, 40, handled=250), Phase(SLOW, 24, produced=5, handled=5)),
        commit_steps=2,
    ),
    Decision(
        "a lag that dips, or was none at a commit long ago, is not being caught up",
        among(OK),
        among(WARN),
        lambda facts: facts.behind_s + STEP_S >= 30 and not facts.caught_up_lately and not facts.fell_at_once,
        story=(Phase(GONE, 30, produced=1000), Phase(SLOW, 40, produced=100, handled=101)),
    ),
    Decision(
        "one message after a commit may be a transaction's marker, which nobody commits",
        among(STOP, WARN),
        among(OK),
        lambda facts: facts.lag == 1,
        story=(Phase(KEEPS_UP, 20, produced=10), Phase(GONE, 1, produced=1), Phase(GONE, 60)),
    ),
)


def ours(story: Story) -> LagStatus:
    known = [one for one in story.points if one.at_s >= story.now_s - OPTIONS.window_s]
    return judge(known, story.now_s, OPTIONS, story.work).status


def burrows(story: Story) -> LagStatus:
    return burrow_status(story.commits, story.ends, story.now_s)


def phases() -> st.SearchStrategy[list[Phase]]:
    phase = st.builds(
        lambda doing, steps, produced, pace, back: Phase(doing, steps, produced, int(produced * pace), back),
        st.sampled_from(Doing), st.integers(1, 60), st.sampled_from(AMOUNTS), st.sampled_from(PACES),
        st.sampled_from(BACK),
    )  # fmt: skip
    return st.lists(phase, min_size=1, max_size=4)


@given(phases(), st.sampled_from([1, 2, 4]))
@settings(max_examples=300)
@example([Phase(SLOW, 36, 1, 0), Phase(STUCK, 37, 1, 0, 500), Phase(GONE, 36)], 4)
def test_they_agree_but_for_what_is_listed(told: list[Phase], commit_steps: int) -> None:
    story = tell(told, commit_steps)
    burrow, our = burrows(story), ours(story)
    facts = Facts(story, commit_steps)
    assert burrow == our or any(burrow in one.burrow and our in one.ours and one.holds(facts) for one in DECISIONS), (
        f"Burrow says {burrow.label}, we {our.label}, and no decision is why"
    )


def test_they_agree_in_four_of_five() -> None:
    """Else decisions would say more than the rules that both have."""
    chance = random.Random(SEED)
    stories = [tell(phases_by(chance), chance.choice([1, 2, 4])) for _ in range(1000)]
    assert sum(burrows(story) == ours(story) for story in stories) >= 800


def phases_by(chance: random.Random) -> list[Phase]:
    told = []
    for _ in range(chance.randint(1, 4)):
        produced = chance.choice(AMOUNTS)
        handled = int(produced * chance.choice(PACES))
        told.append(Phase(chance.choice(list(Doing)), chance.randint(1, 60), produced, handled, chance.choice(BACK)))
    return told


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda one: one.name)
def test_a_decision(decision: Decision) -> None:
    story = tell(decision.story, decision.commit_steps)
    burrow, our = burrows(story), ours(story)
    assert (burrow != our, burrow in decision.burrow, our in decision.ours) == (True, True, True), (burrow, our)
    assert decision.holds(Facts(story, decision.commit_steps))


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ([Phase(KEEPS_UP, 60, produced=100)], OK),
        ([Phase(KEEPS_UP, 60)], OK),
        ([Phase(KEEPS_UP, 20, produced=10), Phase(KEEPS_UP, 100)], OK),
        ([Phase(GONE, 40, produced=100), Phase(SLOW, 60, produced=100, handled=150)], OK),
        ([Phase(SLOW, 100, produced=1000, handled=500)], WARN),
        ([Phase(SLOW, 60, produced=100, handled=50), Phase(GONE, 40, produced=100)], STOP),
        ([Phase(KEEPS_UP, 60, produced=100), Phase(GONE, 40, produced=100)], STOP),
        ([Phase(SLOW, 60, produced=100, handled=90), Phase(STUCK, 40, produced=100)], STALL),
        ([Phase(SLOW, 60, produced=100, handled=90), Phase(SLOW, 6, produced=100, handled=90, back=900)], REWIND),
    ],
)
def test_where_burrow_is_right(told: list[Phase], status: LagStatus) -> None:
    story = tell(told, commit_steps=2)  # as often as Burrow looks at the brokers, so that its lags are of one moment
    assert (burrows(story), ours(story)) == (status, status)


@given(phases(), st.sampled_from([1, 2, 4]), st.integers(10, 1000))
@settings(max_examples=50)
def test_whatever_was_before(told: list[Phase], commit_steps: int, produced: int) -> None:
    """After a whole window there is no doubt about who is gone, who is stuck, and who keeps up."""
    window = int(OPTIONS.window_s / STEP_S) + 1
    some = Phase(GONE, 1, produced=produced)
    assert ours(tell([*told, some, Phase(GONE, window)], commit_steps)) == STOP
    assert ours(tell([*told, some, Phase(STUCK, window)], commit_steps)) == STALL
    assert ours(tell([*told, some, Phase(KEEPS_UP, window)], commit_steps)) == OK
