"""What a handler is given besides its message."""

from dataclasses import dataclass, field
from typing import Protocol

from queuecore.consuming.handlers import HandlerContext
from queuecore.errors import QueueError
from queuecore.hashing import Entity
from queuecore.messages import NO_HEADERS, Headers, Record
from queuecore.queues.composing import Addressed, Composer, Payload


class Outbox:
    """What one attempt of a handler sends. It goes out only if the attempt succeeds. For one thread."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        self._messages: list[Addressed] = []
        self._is_closed = False

    def put(self, queue: str, entity: Entity | None, payload: Payload, headers: Headers) -> None:
        if self._is_closed:
            raise QueueError("this message's handler has returned; send before it does, or use `publish`")
        self._messages.append(self._composer.compose(queue, entity, payload, headers))

    def close(self) -> tuple[Addressed, ...]:
        """No more; what was put in."""
        self._is_closed = True
        return tuple(self._messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryContext(HandlerContext):
    """What a handler may know about the delivery of its message, and its way to send others because of it.

    queue            where the message comes from
    partition        which of the queue's partitions
    attempt          counts from 1
    tenant_id        the header `tenantId`, where there is one
    replayed_letter  the dead letter that was sent again as this message
    """

    partition: int
    _outbox: Outbox = field(repr=False, compare=False)

    def send(self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS) -> None:
        """Send a message as part of handling this one: like `Queues.publish`, but only once the handler has returned
        without an error, and before this message counts as done. With `exactly_once` both happen together or not
        at all. UnknownQueue and InvalidMessage as there."""
        self._outbox.put(queue, entity, payload, headers)


class MessageHandler(Protocol):
    """User code for one message."""

    def __call__(self, record: Record, context: DeliveryContext, /) -> None:
        """Returning means done; raising means failed."""
