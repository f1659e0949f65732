"""From what a caller wants to say to a message with an address."""

from collections.abc import Mapping
from typing import Final, Protocol
from uuid import UUID

from google.protobuf.message import Message

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.context import Payload
from queuecore.deadletter.envelope import PREFIX
from queuecore.encoding import encode, origin_headers
from queuecore.errors import InvalidMessage
from queuecore.hashing import Entity
from queuecore.messages import NO_HEADERS, REPLAY_PREFIX, Headers, Key, OwnHeaders, QueueMessage
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo

# What happened to a message: whose replay it is, and why it was given up.
_OWN_STORY: Final = (REPLAY_PREFIX, PREFIX)


class Directory(Protocol):
    """Knows queues by name. Safe from any thread."""

    def resolve(self, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """The partition of the entity's messages; without an entity, each in turn. UnknownQueue where there is none of
        that name."""


class Composer:
    """Finds the partition, makes the payload bytes, and says who sends and when. Safe from any thread."""

    def __init__(
        self, directory: Directory, producer_id: str, *, debug: bool = False, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._directory = directory
        self._producer_id = producer_id
        self._debug = debug
        self._clock = clock

    def compose(self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS) -> Addressed:
        """UnknownQueue where there is none of that name, InvalidMessage for what cannot be sent. Who sends is
        said anew, even where headers of a received message are passed on."""
        origin = origin_headers(self._producer_id, self._clock.now_ms(), debug=self._debug)
        key = _key_of(entity)
        headers = _checked(headers)
        if isinstance(payload, bytes):
            message = QueueMessage(key, payload, {**headers, **origin})
        elif isinstance(payload, Message):
            message = encode(payload, key, {**headers, **origin})
        else:
            raise InvalidMessage(f"the payload is {type(payload).__name__}; send bytes or a Protocol Buffers message")
        return Addressed(self._directory.resolve(queue, entity), message)


def _checked(headers: Headers) -> Headers:
    """As typed; whoever does not check types shall hear of it here, not from a thread of the provider's. What a message
    that is passed on went through itself is not the new one's story: it is left out."""
    if not isinstance(headers, Mapping):
        raise InvalidMessage(
            f"the headers are {type(headers).__name__}; use a mapping of text to bytes, or leave them out"
        )
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, bytes):
            raise InvalidMessage(f"the header {name!r} is {value!r}; names are text and values are bytes")
    story = PREFIX if isinstance(headers, OwnHeaders) else _OWN_STORY
    if any(name.startswith(story) for name in headers):
        return {name: value for name, value in headers.items() if not name.startswith(story)}
    return headers


def _key_of(entity: Entity | None) -> Key:
    if isinstance(entity, str):
        try:
            return entity.encode()
        except UnicodeEncodeError as error:
            raise InvalidMessage(f"the entity {entity!r} cannot be encoded: {error.reason}; use other text") from None
    if entity is None or isinstance(entity, UUID | bytes):
        return entity
    raise InvalidMessage(f"the entity is {type(entity).__name__}; use a UUID, text, bytes or None")
