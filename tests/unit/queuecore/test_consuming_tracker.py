"""How far a partition is done, beside a set that says the same slowly."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from queuecore.consuming.tracker import OffsetTracker


@dataclass
class Naive:
    given: list[int] = field(default_factory=list)
    complete: set[int] = field(default_factory=set)

    def done(self, more: frozenset[int] = frozenset()) -> int:
        """How many are complete from the first on."""
        found = [offset for offset in self.given if offset not in self.complete | more]
        return self.given.index(found[0]) if found else len(self.given)


class Tracking(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tracker = OffsetTracker()
        self.naive = Naive()
        self.next = 0

    @rule(gaps=st.lists(st.integers(0, 3), min_size=1, max_size=5))
    def give(self, gaps: list[int]) -> None:
        offsets = []
        for gap in gaps:
            offsets.append(self.next + gap)
            self.next += gap + 1
        self.tracker.give(offsets)
        self.naive.given += offsets

    @precondition(lambda self: self.naive.given)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        offsets = data.draw(st.lists(st.sampled_from(self.naive.given), max_size=6))
        self.tracker.complete(offsets)
        self.naive.complete.update(offsets)

    @rule(offsets=st.lists(st.integers(0, 60), max_size=4))
    def complete_what_was_not_given(self, offsets: list[int]) -> None:
        self.tracker.complete([offset for offset in offsets if offset not in self.naive.given])

    @rule(finished=st.frozensets(st.integers(0, 60), max_size=20))
    def ask_what_is_ready(self, finished: frozenset[int]) -> None:
        start, end = self.naive.done(), self.naive.done(finished)
        assert self.tracker.ready(finished) == self.naive.given[start:end]

    @invariant()
    def it_says_what_the_set_says(self) -> None:
        done = self.naive.done()
        assert self.tracker.open == len(self.naive.given) - done
        assert self.tracker.watermark == (self.naive.given[done - 1] + 1 if done else None)


TestTracking = Tracking.TestCase
TestTracking.settings = settings(max_examples=60, stateful_step_count=30)


def test_a_watermark_passes_no_message_that_is_open() -> None:
    tracker = OffsetTracker()
    tracker.give([3, 4, 7])
    tracker.complete([4, 7])
    assert (tracker.watermark, tracker.open) == (None, 3)
    tracker.complete([3])
    assert (tracker.watermark, tracker.open) == (8, 0)


def test_it_knows_its_epoch() -> None:
    assert OffsetTracker(7).epoch == 7
