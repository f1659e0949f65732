"""Whether those who ask and those who answer kept what they promise, judged by what they wrote down.

Every future ends  of who was stopped in good order, all; of who was killed, those whose time was over long before.
                   None ends seconds after its time: the time in which its process stood still does not count.
None twice         its callback ran once, and whoever waited was told the same.
With its own       an answer is that of its request, which somebody handled, and is what the handler made of it. An
                   error is a typed one, and there was a reason for it.
None neglected     who read a request and died had it handled by another, where there was one for long enough.
The counts add up  of every template that was stopped, and are those of the journal.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from queuecore.requests.answering import ANSWER_REFUSED, HANDLER_FAILED, HANDLER_TIMED_OUT
from tests.reliability.requests_journal import Event, Plan, What
from tests.reliability.requests_responder import REFUSED

# A machine that has other things to do is no breach.
LATE_S: Final = 5.0
# How long undisturbed responders may take to find what another left: its session, and dividing the partitions anew.
PATIENCE_S: Final = 10.0
# Clocks are read one after the other.
_EARLY_S: Final = 0.05

ANSWER: Final = "answer"
FAILED: Final = "request_failed/"
TIMED_OUT: Final = "request_timeout"
CANCELLED: Final = "request_cancelled"
STOPPED: Final = "requests_stopped"
DISPLACED: Final = "displaced"
FULL: Final = "too_many_requests"
NOT_STORED: Final = "provider_unavailable"
_TYPED: Final = {ANSWER, TIMED_OUT, CANCELLED, STOPPED, DISPLACED, FULL, NOT_STORED}
# What comes of a plan, where anything comes. A handler that is held up for too long is given up whatever it does.
_MADE: Final = {
    Plan.REPLY: ANSWER,
    Plan.REFUSE: FAILED + REFUSED,
    Plan.BREAK: FAILED + HANDLER_FAILED,
    Plan.BLOAT: FAILED + ANSWER_REFUSED,
    Plan.HANG: FAILED + HANDLER_TIMED_OUT,
}
_DISTURBING: Final = {What.STARTED, What.STOPPING, What.STOPPED, What.KILLED, What.SUSPENDED, What.RESUMED}
_ENDS: Final = ("answered", "failed", "timed_out", "not_stored", "cancelled")


@dataclass(slots=True)
class _Life:
    """Of who asks or answers."""

    started_at: float = float("inf")
    # Until when it is known to have run, and whether it ended in good order.
    ended_at: float = float("inf")
    is_in_order: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    # When it stood still.
    pauses: list[tuple[float, float]] = field(default_factory=list)

    def stood_still_s(self, since: float, until: float) -> float:
        return sum(max(0.0, min(until, end) - max(since, begin)) for begin, end in self.pauses)

    def runs_through(self, since: float, until: float) -> bool:
        is_there = self.started_at <= since and until <= self.ended_at
        return is_there and not self.stood_still_s(since, until)


@dataclass(slots=True)
class _Request:
    sent: Event
    ends: list[Event] = field(default_factory=list)
    told: list[Event] = field(default_factory=list)
    begun: list[Event] = field(default_factory=list)
    was_cancelled: bool = False

    @property
    def deadline(self) -> float:
        return self.sent.at + self.sent.timeout_ms / 1000

    @property
    def outcome(self) -> str:
        return self.ends[0].outcome if self.ends else ""

    def __str__(self) -> str:
        return self.sent.request


@dataclass(frozen=True, slots=True)
class Story:
    """What happened, in order."""

    events: Sequence[Event]

    def outcomes(self) -> Counter[str]:
        """How often requests ended so."""
        return Counter(event.outcome for event in self.events if event.what is What.ENDED)

    def count(self, what: What) -> int:
        return sum(event.what is what for event in self.events)

    def latest_s(self) -> float:
        """How long after its time the latest ended, of those whose processes did not stand still."""
        return _Judge(self).latest_s()


def judge(story: Story) -> list[str]:
    """Every breach, told so that it can be found in the journals."""
    return _Judge(story).breaches()


class _Judge:
    def __init__(self, story: Story) -> None:
        self._lives: defaultdict[str, _Life] = defaultdict(_Life)
        # Who ever handled anything.
        self._responders: set[str] = set()
        self._requests: dict[str, _Request] = {}
        self._strange: list[str] = []
        self._read_lives(story.events)
        self._read_requests(story.events)
        # When anything happened to those who answer.
        askers = {request.sent.asker for request in self._requests.values()}
        self._disturbed = [event.at for event in story.events if event.who not in askers and event.what in _DISTURBING]

    def breaches(self) -> list[str]:
        looks: list[Callable[[_Request], Iterator[str]]] = [
            self._unended, self._late, self._doubled, self._strangers, self._unexplained, self._neglected,
        ]  # fmt: skip
        found = [breach for request in self._requests.values() for look in looks for breach in look(request)]
        return [*self._strange, *found, *self._miscounted()]

    def latest_s(self) -> float:
        return max((self._lateness_s(one, one.ends[0].at) for one in self._requests.values() if one.ends), default=0.0)

    def _read_lives(self, events: Sequence[Event]) -> None:
        for event in events:
            life = self._lives[event.who]
            match event.what:
                case What.STARTED:
                    life.started_at = event.at
                case What.STOPPED:
                    life.ended_at, life.is_in_order, life.counts = event.at, True, dict(event.counts)
                case What.KILLED | What.STOPPING:
                    life.ended_at = min(life.ended_at, event.at)
                case What.SUSPENDED:
                    life.pauses.append((event.at, float("inf")))
                case What.RESUMED:
                    life.pauses[-1] = (life.pauses[-1][0], event.at)
                case What.BROKEN:
                    self._strange.append(f"a thread of {event.who} died of {event.outcome}")
                case What.BEGUN:
                    self._responders.add(event.who)

    def _read_requests(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.what is What.SENT:
                self._requests[event.request] = _Request(event)
        for event in events:
            if event.what not in (What.ENDED, What.TOLD, What.CANCELLED, What.BEGUN):
                continue
            if (request := self._requests.get(event.request)) is None:
                self._strange.append(f"{event.request} is {event.what} by {event.who}, and was never sent")
            elif event.what is What.ENDED:
                request.ends.append(event)
            elif event.what is What.TOLD:
                request.told.append(event)
            elif event.what is What.BEGUN:
                request.begun.append(event)
            else:
                request.was_cancelled = True

    def _lateness_s(self, request: _Request, at: float) -> float:
        """How long after its time that was, without the time in which its process stood still since."""
        asker = self._lives[request.sent.asker]
        return at - request.deadline - asker.stood_still_s(request.deadline, at)

    def _unended(self, request: _Request) -> Iterator[str]:
        if request.ends:
            return
        asker = self._lives[request.sent.asker]
        if asker.is_in_order:
            yield f"{request} never ended, and {request.sent.asker} was stopped in good order"
        elif (late_s := self._lateness_s(request, asker.ended_at)) > LATE_S:
            yield f"{request} had not ended {late_s:.1f} s after its time, when {request.sent.asker} was killed"

    def _late(self, request: _Request) -> Iterator[str]:
        if request.ends and (late_s := self._lateness_s(request, request.ends[0].at)) > LATE_S:
            yield f"{request} ended {late_s:.1f} s after its time, as {request.outcome}"

    def _doubled(self, request: _Request) -> Iterator[str]:
        if len(request.ends) > 1:
            yield f"{request} ended {len(request.ends)} times: {', '.join(one.outcome for one in request.ends)}"
        for told in request.told:
            if request.ends and told.outcome != request.outcome:
                yield f"{request} ended as {request.outcome}, and its caller was told {told.outcome}"

    def _strangers(self, request: _Request) -> Iterator[str]:
        if request.outcome == ANSWER and request.ends[0].answer != str(request):
            yield f"{request} got the answer to {request.ends[0].answer}"
        if (request.outcome == ANSWER or request.outcome.startswith(FAILED)) and not request.begun:
            yield f"{request} ended as {request.outcome}, and nobody handled it"

    def _unexplained(self, request: _Request) -> Iterator[str]:
        outcome, plan = request.outcome, Plan(request.sent.plan)
        asker = self._lives[request.sent.asker]
        if outcome.startswith(FAILED) or outcome == ANSWER:
            if outcome not in (_MADE.get(plan), FAILED + HANDLER_TIMED_OUT):
                yield f"{request} ended as {outcome}, and its handler was to {plan}"
        elif outcome == CANCELLED and not request.was_cancelled:
            yield f"{request} ended as cancelled, and nobody did"
        elif outcome == STOPPED and not asker.is_in_order:
            yield f"{request} ended as stopped, and {request.sent.asker} was not"
        elif outcome == TIMED_OUT and request.ends[0].at < request.deadline - _EARLY_S:
            yield f"{request} timed out before its time"
        elif outcome and outcome not in _TYPED:
            yield f"{request} ended as {outcome}, which is no error of ours"

    def _neglected(self, request: _Request) -> Iterator[str]:
        """Timed out, though nothing happened to those who answer for long before, and one of them was there."""
        asker, deadline = self._lives[request.sent.asker], request.deadline
        if request.outcome != TIMED_OUT or not asker.runs_through(request.sent.at, deadline):
            return
        quiet_from = max((at for at in self._disturbed if at <= deadline), default=request.sent.at)
        since = max(quiet_from, request.sent.at)
        if deadline - since < PATIENCE_S:
            return
        there = [who for who in self._responders if self._lives[who].runs_through(since, deadline)]
        unharmed = [one.who for one in request.begun if self._lives[one.who].runs_through(one.at, deadline)]
        if there and not unharmed:
            before = f"{request.begun[-1].who} had it" if request.begun else "nobody had it"
            yield f"{request} timed out, and {', '.join(sorted(there))} had {deadline - since:.1f} s for it; {before}"

    def _miscounted(self) -> Iterator[str]:
        for who, life in self._lives.items():
            if counts := life.counts:
                ends = sum(counts[name] for name in _ENDS)
                if counts["pending"] or counts["sent"] != ends:
                    yield f"{who} counts {counts['sent']} sent, {counts['pending']} pending and {ends} ended"
                for name, number in self._counted(who).items():
                    if counts[name] != number:
                        yield f"{who} counts {counts[name]} {name}, and {number} are in its journal"

    def _counted(self, who: str) -> dict[str, int]:
        outcomes = [one.outcome for one in self._requests.values() if one.sent.asker == who]
        return {
            "answered": outcomes.count(ANSWER),
            "failed": sum(one.startswith(FAILED) for one in outcomes),
            "timed_out": outcomes.count(TIMED_OUT),
        }
