"""Between Kafka's messages and ours.

A UUID key is written as its text, as ThingsBoard does, so both can share a cluster and Kafka's own tools show it.
What reads as such a text becomes a UUID again; a caller's own 36 bytes that look like one do so too.

A tombstone is a message without a value, which is what Kafka's compaction understands.
"""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from confluent_kafka import OFFSET_INVALID, KafkaError, Message, TopicPartition

from queuecore.errors import InvalidMessage, PayloadTooLarge
from queuecore.messages import TOMBSTONE, UNKNOWN_OFFSET, QueueMessage, RecordMetadata
from queuecore.topics import ProviderPartition

KafkaHeaders = dict[str, str | bytes | None]
DeliveryReport = Callable[[KafkaError | None, Message], None]

_new = tuple.__new__


# A message as it is sent, and the bytes of its key, headers and data: key, value, headers, size.
Encoded = tuple[bytes | None, bytes | None, KafkaHeaders | None, int]


def encode(message: QueueMessage) -> Encoded:
    """ValueError, TypeError or AttributeError for what cannot be sent."""
    key, data, headers = message
    raw = _UUID_TEXTS[key.int] if isinstance(key, UUID) else key
    value: bytes | None = data
    size = len(data) if raw is None else len(data) + len(raw)
    pairs: Any = None
    if headers:
        for name, one in headers.items():
            size += _NAME_SIZES[name] + len(one)
        pairs = headers if type(headers) is dict else dict(headers)
        if not data and TOMBSTONE in pairs:
            value, pairs = None, {name: one for name, one in pairs.items() if name != TOMBSTONE}
    return raw, value, pairs, size


def encode_within(message: QueueMessage, limit: int) -> Encoded:
    """InvalidMessage for what cannot be sent, PayloadTooLarge for what has more bytes than that."""
    try:
        encoded = encode(message)
    except (TypeError, ValueError, AttributeError) as error:
        raise not_encodable(error) from error
    if encoded[3] > limit:
        raise too_large(encoded[3], limit)
    return encoded


def too_large(size: int, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"a message of {size} bytes with key and headers, where {limit} is the most; "
        "send less, or raise max_request_size",
        size=size,
        limit=limit,
    )


def not_encodable(error: Exception) -> InvalidMessage:
    return InvalidMessage(f"the message cannot be encoded: {error}; mend its key, headers or data")


class _UuidTexts(dict[int, bytes]):
    """As `str(UUID)` has them, which takes as long as all the rest of a send. Keys come again."""

    def __missing__(self, number: int) -> bytes:
        digits = number.to_bytes(16).hex()
        text = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}".encode("ascii")
        if len(self) >= _MOST_TEXTS:
            self.clear()
        self[number] = text
        return text


class _NameSizes(dict[str, int]):
    """Of the header names seen so far, in bytes."""

    def __missing__(self, name: str) -> int:
        """ValueError for a name the library would cut short (a NUL) or crash on (a lone surrogate)."""
        raw = name.encode()
        if b"\0" in raw:
            raise ValueError(f"header name {name!r} holds a NUL")
        if len(self) >= _MOST_NAMES:
            self.clear()
        self[name] = len(raw)
        return len(raw)


_MOST_TEXTS: Final = 10_000
_UUID_TEXTS: Final = _UuidTexts()
_MOST_NAMES: Final = 1_024
_NAME_SIZES: Final = _NameSizes()


def to_metadata(message: Message) -> RecordMetadata:
    """Where a message was stored."""
    offset = message.offset()
    if offset is None or offset < 0:
        offset = UNKNOWN_OFFSET
    return _new(RecordMetadata, (message.topic(), message.partition(), offset, message.timestamp()[1]))


def place_of(message: Message) -> ProviderPartition:
    return ProviderPartition(message.topic() or "", _number(message.partition()))


def to_kafka(place: ProviderPartition, offset: int = OFFSET_INVALID) -> TopicPartition:
    return TopicPartition(place.topic, place.partition, offset)


def from_kafka(place: TopicPartition) -> ProviderPartition:
    return ProviderPartition(place.topic, place.partition)


def _number(value: int | None) -> int:
    """The library types as optional what a stored message always has."""
    return -1 if value is None else value
