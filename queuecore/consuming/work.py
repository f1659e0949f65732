"""One message from the poll to its commit."""

from collections.abc import Hashable
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from queuecore.messages import Record

if TYPE_CHECKING:
    from queuecore.sending import Addressed


class Outcome(Enum):
    """How a message's part in one attempt ended.

    NOT_SUBMITTED is no failure: no handler has seen the message in this attempt, so it is carried into the next.
    """

    NOT_SUBMITTED = auto()
    SUCCEEDED = auto()
    FAILED = auto()
    TIMED_OUT = auto()


class Overrun(Protocol):
    """A handler that went on after its time was up. Its outcome is ignored."""

    @property
    def is_over(self) -> bool:
        """Whether the handler has returned after all."""


class Work:
    """A polled message until it is done. Made by the thread that reads; while an attempt is under way its handler's
    thread writes `outcome`, `error` and `outgoing`, under the attempt's lock.

    record              the message
    lane                what it is in sequence with; None: with nothing
    deliveries          how often a handler got it
    failures            how often that failed or timed out
    due_at              not handed over before this time, in seconds of the monotonic clock
    first_failed_at_ms  wall-clock time of the first failure; 0: none yet
    outcome             of the last attempt
    error               why it failed then
    outgoing            what has to be stored before it counts as done: what its handler sent, or the letter it became
    reason              why it was given up; empty: it was not
    overrun             its handler of an earlier attempt, that may still run
    """

    __slots__ = (
        "deliveries",
        "due_at",
        "error",
        "failures",
        "first_failed_at_ms",
        "lane",
        "outcome",
        "outgoing",
        "overrun",
        "reason",
        "record",
    )

    def __init__(self, record: Record, lane: Hashable | None) -> None:
        self.record = record
        self.lane = lane
        self.deliveries = 0
        self.failures = 0
        self.due_at = 0.0
        self.first_failed_at_ms = 0
        self.outcome = Outcome.NOT_SUBMITTED
        self.error: BaseException | None = None
        self.outgoing: tuple[Addressed, ...] = ()
        self.reason = ""
        self.overrun: Overrun | None = None

    def __repr__(self) -> str:
        return f"Work({self.record!r}, {self.outcome.name}, deliveries={self.deliveries}, failures={self.failures})"
