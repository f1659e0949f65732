"""Between Kafka's messages and ours.

A UUID key is written as its text, as ThingsBoard does, so both can share a cluster and Kafka's own tools show it.
What reads as such a text becomes a UUID again; a caller's own 36 bytes that look like one do so too.

A tombstone is a message without a value, which is what Kafka's compaction understands.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from confluent_kafka import OFFSET_INVALID, Message, TopicPartition

from queuecore.messages import TOMBSTONE, UNKNOWN_OFFSET, Headers, Key, QueueMessage, Record, RecordMetadata
from queuecore.topics import ProviderPartition

KafkaHeaders = list[tuple[str, str | bytes | None]]

_UUID_TEXT = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Encoded(NamedTuple):
    """A message as it is sent, and the bytes of its key, headers and data."""

    key: bytes | None
    value: bytes | None
    headers: KafkaHeaders | None
    size: int


def encode(message: QueueMessage) -> Encoded:
    """ValueError or TypeError for what cannot be sent."""
    key, data, headers = message
    raw = encode_key(key)
    size = len(data) + (0 if raw is None else len(raw))
    if not headers:
        return Encoded(raw, data, None, size)
    size += sum(map(header_name_size, headers)) + sum(map(len, headers.values()))
    pairs: KafkaHeaders = list(headers.items())
    if data or TOMBSTONE not in headers:
        return Encoded(raw, data, pairs, size)
    return Encoded(raw, None, [pair for pair in pairs if pair[0] != TOMBSTONE], size)


def encode_key(key: Key) -> bytes | None:
    return str(key).encode("ascii") if isinstance(key, UUID) else key


@lru_cache(maxsize=1024)
def header_name_size(name: str) -> int:
    """In bytes. ValueError for a name the library would cut short (a NUL) or crash on (a lone surrogate)."""
    raw = name.encode()
    if b"\0" in raw:
        raise ValueError(f"header name {name!r} holds a NUL")
    return len(raw)


def decode_key(raw: bytes | None) -> Key:
    if raw is None or len(raw) != 36 or not _UUID_TEXT.fullmatch(raw):
        return raw
    return UUID(raw.decode("ascii"))


class StoredMessage(NamedTuple):
    """A record's source: its key and headers are decoded when they are asked for."""

    message: Message

    @property
    def topic(self) -> str:
        return self.message.topic() or ""

    @property
    def partition(self) -> int:
        return _number(self.message.partition())

    def key(self, index: int) -> Key:  # noqa: ARG002
        return decode_key(self.message.key())

    def headers(self, index: int) -> Headers:  # noqa: ARG002
        """Of repeated headers the last counts; null and empty are the same."""
        stored = self.message.headers() or []
        pairs = stored.items() if isinstance(stored, dict) else stored
        headers = {name: _bytes(value) or b"" for name, value in pairs}
        if self.message.value() is None:
            headers[TOMBSTONE] = b""
        return headers


def to_records(messages: Iterable[Message]) -> list[Record]:
    """Stored messages as records."""
    new = tuple.__new__
    return [
        new(
            Record,
            (message.offset(), message.timestamp()[1], message.value() or b"", 0, new(StoredMessage, (message,))),
        )
        for message in messages
    ]


def to_metadata(message: Message) -> RecordMetadata:
    """Where a message was stored."""
    offset = _number(message.offset())
    where = (message.topic(), message.partition(), max(UNKNOWN_OFFSET, offset), message.timestamp()[1])
    return tuple.__new__(RecordMetadata, where)


def place_of(message: Message) -> ProviderPartition:
    return ProviderPartition(message.topic() or "", _number(message.partition()))


def to_kafka(place: ProviderPartition, offset: int = OFFSET_INVALID) -> TopicPartition:
    return TopicPartition(place.topic, place.partition, offset)


def from_kafka(place: TopicPartition) -> ProviderPartition:
    return ProviderPartition(place.topic, place.partition)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _number(value: int | None) -> int:
    """The library types as optional what a stored message always has."""
    return -1 if value is None else value
