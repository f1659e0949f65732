"""Whether consumers kept what their queue promises, judged by what they wrote down while they were at it.

Nothing lost     every message has an output or a letter. At most once alone may lose what a crash caught.
Nothing doubled  at most once: no message is delivered twice. Exactly once: each has one output or one letter.
Order            of what is in sequence: within one tenure a message is first delivered after all before it, and never
                 while one before it is under way or will be tried again. A new owner goes on where all before is done.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

from queuecore.delivery import Delivery
from queuecore.processing import ProcessingStrategy, ProcessingStrategyType
from queuecore.submit import SubmitStrategyType


class What(StrEnum):
    """What happened."""

    ASSIGNED = "assigned"
    RELEASED = "released"
    CRASHED = "crashed"
    BEGUN = "begun"
    # How a handler ended: it returned, raised, raised because there was nothing to be done, or overran its time.
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNDECODABLE = "undecodable"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True)
class Event:
    """A line of the journal. `who` is one life of one consumer; `attempt` counts from 1."""

    what: What
    who: str
    partition: int = -1
    number: int = -1
    attempt: int = 0

    def line(self) -> bytes:
        """On a line of its own, whatever is before it: one who is killed may leave half a line."""
        return b"\n" + json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, line: str) -> "Event":
        said = json.loads(line)
        return cls(What(said.pop("what")), **said)


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it was published: its data is the number. Numbers rise within a partition. Without a key it is in
    sequence with no other of its entity; without a tenant, with those that have none either."""

    number: int
    partition: int
    key: str
    tenant: str


@dataclass(frozen=True, slots=True)
class Promise:
    submit: SubmitStrategyType
    processing: ProcessingStrategy
    delivery: Delivery

    def lane(self, message: Message) -> Hashable | None:
        """What the message is in sequence with; None: with nothing."""
        match self.submit:
            case SubmitStrategyType.SEQUENTIAL:
                return message.partition
            case SubmitStrategyType.SEQUENTIAL_BY_ORIGINATOR:
                return (message.partition, message.key) if message.key else None
            case SubmitStrategyType.SEQUENTIAL_BY_TENANT:
                return message.partition, message.tenant
            case _:
                return None

    def settles(self, what: What, failures: int) -> bool:
        """Whether a message is done with, when its handler ended so and has failed so often."""
        if what in (What.SUCCEEDED, What.UNDECODABLE) or self.delivery is Delivery.AT_MOST_ONCE:
            return True
        return what not in _RETRIED[self.processing.kind] or 0 < self.processing.retries < failures


_RETRIED: Final = {
    ProcessingStrategyType.SKIP_ALL_FAILURES: set(),
    ProcessingStrategyType.SKIP_ALL_FAILURES_AND_TIMED_OUT: set(),
    ProcessingStrategyType.RETRY_ALL: {What.FAILED, What.TIMED_OUT},
    ProcessingStrategyType.RETRY_FAILED: {What.FAILED},
    ProcessingStrategyType.RETRY_TIMED_OUT: {What.TIMED_OUT},
    ProcessingStrategyType.RETRY_FAILED_AND_TIMED_OUT: {What.FAILED, What.TIMED_OUT},
}


@dataclass(frozen=True, slots=True)
class Story:
    """What was published, what happened, and what there is now: how often each message is among outputs and letters."""

    messages: Sequence[Message]
    events: Sequence[Event]
    outputs: Mapping[int, int]
    letters: Mapping[int, int]


def judge(promise: Promise, story: Story) -> list[str]:
    """Every breach of the promise, told so that it can be found in the journal."""
    return [*_losses(promise, story), *_doubles(promise, story), *_Sequences(promise, story).breaches()]


def _losses(promise: Promise, story: Story) -> Iterator[str]:
    lost = [one for one in story.messages if not story.outputs.get(one.number) and not story.letters.get(one.number)]
    if promise.delivery is not Delivery.AT_MOST_ONCE:
        yield from (f"{one.number} is lost" for one in lost)
        return
    crashed = {event.who for event in story.events if event.what is What.CRASHED}
    held = _held_in_a_crash(story.events)
    begun = {event.number: event.who for event in story.events if event.what is What.BEGUN}
    for one in lost:
        if one.partition not in held:
            yield f"{one.number} is lost, and nobody crashed while they held partition {one.partition}"
        elif begun.get(one.number, "") not in crashed | {""}:
            yield f"{one.number} is lost, and {begun[one.number]}, who had it, did not crash"


def _held_in_a_crash(events: Iterable[Event]) -> set[int]:
    """The partitions that somebody held who crashed: who has given one back has left nothing of it undone."""
    holding: dict[str, set[int]] = defaultdict(set)
    held: set[int] = set()
    for event in events:
        if event.what is What.ASSIGNED:
            holding[event.who].add(event.partition)
        elif event.what is What.RELEASED:
            holding[event.who].discard(event.partition)
        elif event.what is What.CRASHED:
            held |= holding.pop(event.who, set())
    return held


def _doubles(promise: Promise, story: Story) -> Iterator[str]:
    if promise.delivery is Delivery.AT_LEAST_ONCE:
        return
    ends = Counter(story.outputs) + Counter(story.letters)
    for number, count in ends.items():
        if count > 1:
            yield f"{number} has {story.outputs.get(number, 0)} outputs and {story.letters.get(number, 0)} letters"
    if promise.delivery is Delivery.AT_MOST_ONCE:
        begun = Counter(event.number for event in story.events if event.what is What.BEGUN)
        yield from (f"{number} was delivered {count} times" for number, count in begun.items() if count > 1)


@dataclass(slots=True)
class _Life:
    """A message in one tenure."""

    failures: int = 0
    is_running: bool = False
    is_settled: bool = False


@dataclass(slots=True)
class _Tenure:
    """A partition in the hands of one consumer, from when it is given until it is taken away."""

    lives: dict[int, _Life] = field(default_factory=dict)
    is_over: bool = False


class _Sequences:
    """Reads the journal once, and knows at each line what is done and what is not."""

    def __init__(self, promise: Promise, story: Story) -> None:
        self._promise = promise
        self._events = story.events
        self._lanes: dict[Hashable, list[int]] = defaultdict(list)
        self._lane_of: dict[int, Hashable | None] = {}
        for message in sorted(story.messages, key=lambda one: one.number):
            lane = self._lane_of[message.number] = promise.lane(message)
            if lane is not None:
                self._lanes[lane].append(message.number)
        self._tenures: dict[tuple[str, int], _Tenure] = {}
        # Done with in some tenure, and not to be waited for in the next.
        self._settled: set[int] = set()
        self._crashed: set[str] = set()
        # Those that became letters, by partition.
        self._letters: dict[int, set[int]] = defaultdict(set)
        for message in story.messages:
            if story.letters.get(message.number):
                self._letters[message.partition].add(message.number)

    def breaches(self) -> Iterator[str]:
        for event in self._events:
            if event.who in self._crashed:
                # A handler of one that gave way at once: nobody hears what becomes of it.
                continue
            match event.what:
                case What.CRASHED:
                    self._crash(event.who)
                case What.ASSIGNED:
                    self._tenures[event.who, event.partition] = _Tenure()
                case What.RELEASED:
                    self._tenures[event.who, event.partition].is_over = True
                case What.BEGUN:
                    yield from self._begin(event)
                case _:
                    self._end(event)

    def _crash(self, who: str) -> None:
        """What was under way may be given up for that, though it had not yet noted that it began."""
        self._crashed.add(who)
        for holder, partition in self._tenures:
            if holder == who:
                self._settled |= self._letters[partition]

    def _begin(self, event: Event) -> Iterator[str]:
        tenure = self._tenures.get((event.who, event.partition))
        if tenure is None or tenure.is_over:
            yield f"{event.who} was given {event.number} and does not hold partition {event.partition}"
            return
        if (lane := self._lane_of[event.number]) is not None:
            yield from self._breaches_in(tenure, self._lanes[lane], event)
        if event.attempt == 1:
            tenure.lives[event.number] = _Life()
        tenure.lives.setdefault(event.number, _Life()).is_running = True

    def _breaches_in(self, tenure: _Tenure, lane: Iterable[int], event: Event) -> Iterator[str]:
        told = f"{event.who} was given {event.number} (attempt {event.attempt})"
        for other in lane:
            life = tenure.lives.get(other)
            if life is not None and life.is_running and other != event.number:
                yield f"{told} while {other} was under way"
            elif other > event.number and life is not None and event.number not in tenure.lives:
                yield f"{told} after {other}"
            elif other < event.number and not self._is_past(other, life):
                yield f"{told} before {other} was done"

    def _is_past(self, number: int, life: _Life | None) -> bool:
        if life is not None:
            return life.is_settled
        # What at most once loses in a crash is nobody's to wait for.
        return number in self._settled or self._promise.delivery is Delivery.AT_MOST_ONCE

    def _end(self, event: Event) -> None:
        tenure = self._tenures.get((event.who, event.partition))
        if tenure is None or (life := tenure.lives.get(event.number)) is None:
            return
        life.is_running = False
        life.failures += event.what is not What.SUCCEEDED
        life.is_settled = self._promise.settles(event.what, life.failures)
        if life.is_settled:
            self._settled.add(event.number)


def read_journal(text: str) -> list[Event]:
    """What is only half written is left out: it is being written, or its writer was killed instead."""
    return [Event.of(line) for line in text.splitlines() if line.endswith("}")]
