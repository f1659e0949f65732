"""A request, as its responder sees it."""

from collections.abc import Awaitable, Callable
from enum import Enum
from uuid import UUID

from google.protobuf.message import Message

from queuecore.clock import Clock
from queuecore.consuming.tracker import OffsetTracker
from queuecore.messages import Headers, Key, QueueMessage, Record
from queuecore.topics import TopicPartitionInfo


class Outcome(Enum):
    """What became of a request, as `ResponseCounts` has it."""

    ANSWERED = "answered"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    EXPIRED = "expired"
    MALFORMED = "malformed"
    UNDELIVERABLE = "undeliverable"

    # An enumeration's own runs in Python, and every request is counted by its outcome.
    __hash__ = object.__hash__


class Request:
    """What a handler is called with. Its answer is what the handler returns, or an error made of what it raises.

    Handlers on threads cannot be interrupted: one that takes long looks at `cancelled`, or at `remaining_s`.
    """

    __slots__ = (
        "_clock",
        "answer",
        "answer_to",
        "cancelled",
        "deadline",
        "outcome",
        "record",
        "request_id",
        "started_at",
        "tracker",
    )

    def __init__(
        self,
        record: Record,
        request_id: bytes,
        answer_to: TopicPartitionInfo,
        deadline: float,
        tracker: OffsetTracker,
        clock: Clock,
    ) -> None:
        self.record = record
        self.request_id = request_id
        self.answer_to = answer_to
        # By the clock's `monotonic`: when nobody waits for the answer any more, and when it was begun.
        self.deadline = deadline
        self.started_at = 0.0
        # Where it counts as done.
        self.tracker = tracker
        # Told by its responder: the answer will be ignored.
        self.cancelled = False
        # Set by who ends it.
        self.outcome = Outcome.ANSWERED
        self.answer: QueueMessage | None = None
        self._clock = clock

    @property
    def id(self) -> UUID:
        return UUID(bytes=self.request_id)

    @property
    def data(self) -> bytes:
        return self.record.data

    @property
    def key(self) -> Key:
        return self.record.key

    @property
    def headers(self) -> Headers:
        return self.record.headers

    @property
    def remaining_s(self) -> float:
        """How long the answer is still waited for; 0 when it is too late."""
        return max(0.0, self.deadline - self._clock.monotonic())


# Nothing is an answer too: one without data.
Reply = QueueMessage | Message | bytes | None
RequestHandler = Callable[[Request], Reply] | Callable[[Request], Awaitable[Reply]]
