"""One message from the poll to its commit."""

from collections.abc import Hashable
from enum import Enum, auto
from typing import TYPE_CHECKING

from queuecore.deadletter.attempts import FailedAttempt
from queuecore.messages import Record

if TYPE_CHECKING:
    from queuecore.sending import Addressed


class Outcome(Enum):
    """How a message's part in one attempt ended.

    NOT_SUBMITTED is no failure: no handler has seen the message in this attempt, so it is carried into the next.
    """

    NOT_SUBMITTED = auto()
    SUCCEEDED = auto()
    # A replay that another group is to handle: done, without a handler.
    PASSED_OVER = auto()
    # The handler wants it again later. It has not failed, and holds back its lane.
    POSTPONED = auto()
    FAILED = auto()
    TIMED_OUT = auto()


class Trouble:
    """What few messages have: a history of attempts that did not end well.

    failures            how often a handler failed or timed out
    due_at              not handed over before this time, in seconds of the monotonic clock
    first_failed_at_ms  wall-clock time of the first failure; 0: none yet
    attempts            those that failed, as its letter would tell them
    error               why the last attempt failed
    reason              why the message was given up; empty: it was not
    is_unsettled        finished, and what it has to store is not known to be stored
    """

    __slots__ = ("attempts", "due_at", "error", "failures", "first_failed_at_ms", "is_unsettled", "reason")

    def __init__(self) -> None:
        self.failures = 0
        self.due_at = 0.0
        self.first_failed_at_ms = 0
        self.attempts: list[FailedAttempt] = []
        self.error: BaseException | None = None
        self.reason = ""
        self.is_unsettled = False


class Work:
    """A polled message until it is done. Made by the thread that reads; while an attempt is under way its handler's
    thread writes `outcome`, `outgoing` and `trouble`, under the attempt's lock.

    record       the message
    size         how many bytes its data have
    lane         what it is in sequence with; None: with nothing
    tenant       whom its header names; None: nobody. Known once a handler got it
    deliveries   how often a handler got it
    outcome      of the last attempt
    outgoing     what has to be stored before it counts as done: what its handler sent, or the letter it became
    is_finished  done or given up: no further attempt
    is_special   whether there is more to it than that its handler returned
    """

    # One is made for every message: what few of them have is apart.
    __slots__ = (
        *("_trouble", "deliveries", "is_finished", "is_special", "lane", "outcome", "outgoing", "record", "size"),
        "tenant",
    )

    def __init__(self, record: Record, lane: Hashable | None) -> None:
        self.record = record
        self.size = len(record[2])
        self.lane = lane
        self.tenant: bytes | None = None
        self.deliveries = 0
        self.outcome = Outcome.NOT_SUBMITTED
        self.outgoing: tuple[Addressed, ...] = ()
        self.is_finished = self.is_special = False
        self._trouble: Trouble | None = None

    @property
    def trouble(self) -> Trouble:
        """Made when it is first asked for; to look whether there is any, ask `has_trouble`."""
        if self._trouble is None:
            self._trouble = Trouble()
            self.is_special = True
        return self._trouble

    @property
    def has_trouble(self) -> bool:
        return self._trouble is not None

    @property
    def error(self) -> BaseException | None:
        return None if self._trouble is None else self._trouble.error

    @property
    def failures(self) -> int:
        return 0 if self._trouble is None else self._trouble.failures

    @property
    def due_at(self) -> float:
        return 0.0 if self._trouble is None else self._trouble.due_at

    @property
    def reason(self) -> str:
        return "" if self._trouble is None else self._trouble.reason

    @property
    def is_unsettled(self) -> bool:
        return self._trouble is not None and self._trouble.is_unsettled

    def __repr__(self) -> str:
        return f"Work({self.record!r}, {self.outcome.name}, deliveries={self.deliveries}, failures={self.failures})"
