"""What a handler is given besides its message."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from queuecore.errors import QueueError
from queuecore.hashing import Entity
from queuecore.messages import NO_HEADERS, REPLAY_LETTER, TENANT_ID, Headers, Record, text_header
from queuecore.queues.composing import Composer, Payload
from queuecore.queues.places import place_of
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition, TopicPartitionInfo


@dataclass(frozen=True, slots=True)
class Workplace:
    """What all deliveries of one subscription have in common."""

    queue: str
    infos: Mapping[ProviderPartition, TopicPartitionInfo]
    composer: Composer


class DeliveryContext:
    """What a handler may know about the delivery of its message, and its way to send others because of it."""

    # One is made for every message: what few handlers ask for is looked up when they do.
    __slots__ = ("_attempt", "_outbox", "_record", "_workplace")

    def __init__(self, workplace: Workplace, record: Record, attempt: int) -> None:
        self._workplace = workplace
        self._record = record
        self._attempt = attempt
        # None once the handler has returned.
        self._outbox: list[Addressed] | None = []

    @property
    def queue(self) -> str:
        """Where the message comes from."""
        return self._workplace.queue

    @property
    def partition(self) -> int:
        """Which of the queue's partitions."""
        return self._workplace.infos[place_of(self._record)].partition or 0

    @property
    def attempt(self) -> int:
        """Counts from 1."""
        return self._attempt

    @property
    def tenant_id(self) -> str | None:
        """The header `tenantId`, where there is one."""
        return text_header(self._record.headers, TENANT_ID)

    @property
    def replayed_letter(self) -> str | None:
        """The dead letter that was sent again as this message."""
        return text_header(self._record.headers, REPLAY_LETTER)

    def send(self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS) -> None:
        """Send a message as part of handling this one: like `Queues.publish`, but only once the handler has returned
        without an error, and before this message counts as done. With `exactly_once` both happen together or not
        at all. UnknownQueue and InvalidMessage as there."""
        if self._outbox is None:
            raise QueueError("this message's handler has returned; send before it does, or use `publish`")
        self._outbox.append(self._workplace.composer.compose(queue, entity, payload, headers))

    def __repr__(self) -> str:
        return f"DeliveryContext({self.queue!r}, partition={self.partition}, attempt={self.attempt})"


class OpenDelivery(DeliveryContext):
    """A context as its subscription has it: what is sent goes out only if the attempt succeeds. For one thread."""

    __slots__ = ()

    def close(self) -> tuple[Addressed, ...]:
        """No more; what was sent."""
        outbox, self._outbox = self._outbox, None
        return tuple(outbox) if outbox else ()


class MessageHandler(Protocol):
    """User code for one message."""

    def __call__(self, record: Record, context: DeliveryContext, /) -> None:
        """Returning means done; raising means failed."""
