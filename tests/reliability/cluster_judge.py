"""Whether a cluster kept what it promises, judged by what its processes wrote down.

A tenure is a partition in the hands of one host, from when it is given until the next is, there or elsewhere.

Fencing          once a commit of an epoch has returned, none of a lower epoch that is begun later is accepted.
No way back      nor does any that is begun later say less than one that has returned.
Nothing is lost  every stored message was handled to its end, or is a dead letter.
Order            for each entity, messages being delivered at least once:
                 - a message is begun for the first time when all before it have ended, in whoever's hands;
                 - within a tenure its messages are begun one by one, each once, and each when the one before has ended;
                 - what comes again was not committed: a tenure begins nothing below what was when it was given;
                 - who has lost a partition begins nothing more of it. One whose process stood still meanwhile cannot
                   know before it looks: what it begins until then is allowed, and by fencing is not committed once
                   the next owner has.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from tests.reliability.cluster_handler import CONCURRENCY
from tests.reliability.cluster_journal import Event, What

# What may be on its way to handlers when a lease is found to be over: one message for each of their threads.
_ON_THEIR_WAY: Final = CONCURRENCY


@dataclass(frozen=True, slots=True)
class Story:
    """What happened, in order, and which messages are letters: `entity/number`."""

    events: Sequence[Event]
    letters: Collection[str] = frozenset()


def judge(story: Story) -> list[str]:
    """Every breach, told so that it can be found in the journals."""
    commits = _commits(story.events)
    return [
        *(breach for those in commits.values() for breach in _commit_breaches(those)),
        *_losses(story),
        *_Order(story, commits).breaches(),
    ]


@dataclass(frozen=True, slots=True)
class Commit:
    """One that was accepted."""

    place: str
    who: str
    epoch: int
    offset: int
    begun_at: float
    ended_at: float

    def __str__(self) -> str:
        return f"{self.who}'s commit of {self.place} to {self.offset} under epoch {self.epoch} at {self.begun_at:.3f}"


def _further(one: Commit, two: Commit) -> Commit:
    return two if two.offset >= one.offset else one


def _newer(one: Commit, two: Commit) -> Commit:
    return two if two.epoch >= one.epoch else one


class _Commits(list[Commit]):
    """Of one partition, in the order in which they returned."""

    def __init__(self, commits: Iterable[Commit]) -> None:
        super().__init__(sorted(commits, key=lambda commit: commit.ended_at))
        self._ends = [commit.ended_at for commit in self]
        self._furthest = list(accumulate(self, _further))
        self._newest = list(accumulate(self, _newer))

    def furthest_before(self, at: float) -> Commit | None:
        return self._furthest[count - 1] if (count := bisect_right(self._ends, at)) else None

    def newest_before(self, at: float) -> Commit | None:
        return self._newest[count - 1] if (count := bisect_right(self._ends, at)) else None


def _commits(events: Iterable[Event]) -> dict[str, _Commits]:
    begun: dict[tuple[int, int, str], float] = {}
    found: defaultdict[str, list[Commit]] = defaultdict(list)
    for event in events:
        call = (event.pid, event.call, event.place)
        if event.what is What.COMMITTING:
            begun[call] = event.at
        elif event.what is What.COMMITTED:
            commit = Commit(event.place, event.who, event.epoch, event.offset, begun[call], event.at)
            found[event.place].append(commit)
    return {place: _Commits(those) for place, those in found.items()}


def _commit_breaches(commits: _Commits) -> Iterator[str]:
    for commit in commits:
        newest, furthest = commits.newest_before(commit.begun_at), commits.furthest_before(commit.begun_at)
        if newest is not None and newest.epoch > commit.epoch:
            yield f"{commit} was accepted after {newest}"
        if furthest is not None and furthest.offset > commit.offset:
            yield f"{commit} goes back behind {furthest}"


def _losses(story: Story) -> Iterator[str]:
    ended = {(event.entity, event.number) for event in story.events if event.what is What.ENDED}
    for event in story.events:
        if event.what is What.STORED and (event.entity, event.number) not in ended and not _is_letter(story, event):
            yield f"{event.entity}/{event.number} is lost, it was stored as {event.place}@{event.offset}"


def _is_letter(story: Story, event: Event, earlier: int = 0) -> bool:
    return f"{event.entity}/{event.number - earlier}" in story.letters


@dataclass(slots=True)
class _Tenure:
    given: Event
    # The newest message of each entity that was begun in it, and whether that has ended.
    newest: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    # How many were begun since the host knew that its lease was over.
    after_the_end: int | None = None


class _Order:
    """Reads the journals once, and knows at each line who has what and what is done."""

    def __init__(self, story: Story, commits: dict[str, _Commits]) -> None:
        self._story = story
        self._commits = commits
        self._tenures: dict[tuple[int, str], _Tenure] = {}
        # The newest tenure of each partition, of all hosts'.
        self._current: dict[str, Event] = {}
        self._running: dict[tuple[int, int], _Tenure] = {}
        self._ended: set[tuple[str, int]] = set()
        self._begun: set[tuple[str, int]] = set()
        self._paused_at: dict[int, float] = {}

    def breaches(self) -> Iterator[str]:
        for event in self._story.events:
            match event.what:
                case What.GIVEN:
                    self._give(event)
                case What.PAUSED:
                    self._paused_at[event.pid] = event.at
                case What.OVER:
                    self._end_tenures(event)
                case What.BEGUN:
                    yield from self._begin(event)
                case What.ENDED:
                    self._end(event)

    def _give(self, event: Event) -> None:
        self._tenures[event.pid, event.place] = _Tenure(event)
        current = self._current.get(event.place)
        if current is None or event.epoch >= current.epoch:
            self._current[event.place] = event

    def _end_tenures(self, event: Event) -> None:
        for (pid, _), tenure in self._tenures.items():
            if pid == event.pid and tenure.after_the_end is None:
                tenure.after_the_end = 0

    def _begin(self, event: Event) -> Iterator[str]:
        told = f"{event.who} began {event.entity}/{event.number} ({event.place}@{event.offset}) at {event.at:.3f}"
        tenure = self._tenures.get((event.pid, event.place))
        if tenure is None:
            yield f"{told}, and was not given the partition"
            return
        breaches = (
            *self._out_of_turn(event),
            *self._out_of_sequence(tenure, event),
            *self._committed_already(tenure, event),
            *self._others(tenure, event),
        )
        yield from (f"{told}{breach}" for breach in breaches)
        self._begun.add((event.entity, event.number))
        tenure.newest[event.entity] = event.number
        tenure.running.add(event.entity)
        self._running[event.pid, event.call] = tenure

    def _end(self, event: Event) -> None:
        self._ended.add((event.entity, event.number))
        if (tenure := self._running.pop((event.pid, event.call), None)) is not None:
            tenure.running.discard(event.entity)

    def _out_of_turn(self, event: Event) -> Iterator[str]:
        before = (event.entity, event.number - 1)
        is_first = (event.entity, event.number) not in self._begun
        if is_first and event.number and before not in self._ended and not _is_letter(self._story, event, earlier=1):
            yield " before the one before it had ended"

    def _out_of_sequence(self, tenure: _Tenure, event: Event) -> Iterator[str]:
        if event.entity in tenure.running:
            yield f" while it was still at {tenure.newest[event.entity]}"
        newest = tenure.newest.get(event.entity)
        if newest is None:
            return
        skipped = range(newest + 1, event.number)
        if event.number <= newest or any(f"{event.entity}/{number}" not in self._story.letters for number in skipped):
            yield f" after {newest} in the same tenure"

    def _committed_already(self, tenure: _Tenure, event: Event) -> Iterator[str]:
        commits = self._commits.get(event.place)
        furthest = commits and commits.furthest_before(tenure.given.since)
        if furthest and event.offset < furthest.offset:
            yield f", which was done when it was given the partition: {furthest}"

    def _others(self, tenure: _Tenure, event: Event) -> Iterator[str]:
        if tenure.after_the_end is not None:
            tenure.after_the_end += 1
            if tenure.after_the_end > _ON_THEIR_WAY:
                yield " and knew that its lease was over"
        current = self._current[event.place]
        if current.epoch <= tenure.given.epoch:
            return
        paused_at = self._paused_at.get(event.pid)
        if paused_at is None or not tenure.given.at <= paused_at <= current.at:
            yield f", and {current.who} had the partition, since {current.at:.3f} under epoch {current.epoch}"
