"""How many dead letters a partition may have."""

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.deadletter.policy import DeadLetterPolicy, LimitState
from queuecore.errors import ConfigurationError, InvalidName

# In parts of the window, of which what is older is forgotten.
PARTS = 60


@dataclass
class Naive:
    """Every message with its time. A time here is a number of whole parts of the window."""

    policy: DeadLetterPolicy
    finished: list[tuple[int, bool]] = field(default_factory=list)

    def finish(self, done: int, given_up: int, now: int) -> None:
        self.finished += [(now, False)] * done + [(now, True)] * given_up

    def allows_another(self, now: int) -> bool:
        recent = [is_given_up for at, is_given_up in self.finished if now - at <= PARTS]
        given_up = sum(recent) + 1
        if self.policy.max_count and given_up > self.policy.max_count:
            return False
        return len(recent) < self.policy.min_total or given_up / (len(recent) + 1) <= self.policy.max_ratio


policies = st.builds(
    DeadLetterPolicy,
    max_ratio=st.sampled_from([0.01, 0.1, 0.29, 0.5, 1.0]),
    max_count=st.integers(0, 5),
    min_total=st.integers(1, 20),
    # Powers of two: so that times which are whole parts of it are exact.
    window_s=st.sampled_from([0.5 * PARTS, float(PARTS), 64.0 * PARTS]),
)
# How many parts of the window pass, and then: how many are done, and how many want to be given up.
steps = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(0, 4)), max_size=30)


@given(policies, steps, st.integers(0, 1_000))
def test_it_decides_as_one_who_remembers_every_message(
    policy: DeadLetterPolicy, steps: list[tuple[int, int, int]], now: int
) -> None:
    naive, state, part_s = Naive(policy), policy.state(), policy.window_s / PARTS
    for passed, done, failed in steps:
        now += passed
        naive.finish(done, 0, now)
        state.finish(done, 0, now * part_s)
        for _ in range(failed):
            allowed = naive.allows_another(now)
            assert state.allows_another(now * part_s) == allowed
            # What is dropped is finished, and no letter.
            naive.finish(not allowed, allowed, now)
            state.finish(not allowed, allowed, now * part_s)


@given(st.floats(0, 1e6), st.floats(0.001, 1e5), st.floats(0, 2.5))
def test_a_letter_counts_for_the_window_and_hardly_longer(at_s: float, window_s: float, age: float) -> None:
    state = DeadLetterPolicy(max_count=1, window_s=window_s).state()
    state.finish(0, 1, at_s)
    allowed = state.allows_another(at_s + age * window_s)
    if age < 0.999:
        assert not allowed
    elif age > 1 + 1 / PARTS + 0.001:
        assert allowed


def letters_in(state: LimitState, finished: int, now_s: float = 0.0) -> int:
    """How many letters become of messages that all fail, one after the other; the others are dropped."""
    letters = 0
    for _ in range(finished):
        allowed = state.allows_another(now_s)
        state.finish(not allowed, allowed, now_s)
        letters += allowed
    return letters


def test_by_default_there_is_no_limit() -> None:
    assert letters_in(DeadLetterPolicy().state(), 10_000) == 10_000


def test_a_count_is_what_a_window_may_have_and_the_next_may_have_it_too() -> None:
    state = DeadLetterPolicy(max_count=10, window_s=60).state()
    assert letters_in(state, 50) == 10
    assert letters_in(state, 50, 60.0) == 0
    assert letters_in(state, 50, 61.0) == 10


def test_what_is_dropped_uses_up_nothing() -> None:
    state = DeadLetterPolicy(max_count=10, window_s=60).state()
    assert sum(letters_in(state, 1, float(second)) for second in range(6_000)) == pytest.approx(1_000, rel=0.03)


def test_a_ratio_is_of_all_that_are_finished_and_says_nothing_of_a_few() -> None:
    state = DeadLetterPolicy(max_ratio=0.29, min_total=100).state()
    assert letters_in(state, 29) == 29
    state.finish(71, 0, 0.0)
    assert not state.allows_another(0.0)
    state.finish(3, 0, 0.0)
    assert state.allows_another(0.0)


def test_a_ratio_in_percent_is_exact() -> None:
    for percent in range(1, 101):
        state = DeadLetterPolicy(max_ratio=percent / 100, min_total=1).state()
        state.finish(100 - percent, percent - 1, 0.0)
        assert state.allows_another(0.0), percent


def test_the_first_message_alone_is_no_ratio() -> None:
    assert DeadLetterPolicy(max_ratio=0.01, min_total=1).state().allows_another(0.0)


def test_only_parts_of_the_window_are_remembered() -> None:
    state = DeadLetterPolicy().state()
    for now_s in itertools.takewhile(lambda now_s: now_s < 1_000, itertools.count(0.0, 0.1)):
        state.finish(1, 0, now_s)
    assert len(state._slots) <= PARTS + 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_ratio": 0.0},
        {"max_ratio": 1.1},
        {"max_ratio": float("nan")},
        {"max_count": -1},
        {"min_total": 0},
        {"window_s": 0.0},
        {"window_s": float("nan")},
    ],
    ids=str,
)
def test_what_is_no_limit_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        DeadLetterPolicy(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("topic", ["with space", "x" * 245], ids=["characters", "no room for the payloads' topic"])
def test_a_topic_that_cannot_be_is_refused(topic: str) -> None:
    with pytest.raises(InvalidName):
        DeadLetterPolicy(topic=topic)
    assert DeadLetterPolicy(topic="all-letters.dlq").topic == "all-letters.dlq"
