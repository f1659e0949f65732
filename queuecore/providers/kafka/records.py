"""Between Kafka's messages and ours.

A UUID key is written as its text, as ThingsBoard does, so both can share a cluster and Kafka's own tools show it.
What reads as such a text becomes a UUID again; a caller's own 36 bytes that look like one do so too.
"""

import re
from uuid import UUID

from confluent_kafka import Message

from queuecore.messages import Headers, Key, Record
from queuecore.topics import ProviderPartition

_UUID_TEXT = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def encode_key(key: Key) -> bytes | None:
    return str(key).encode("ascii") if isinstance(key, UUID) else key


def encode_headers(headers: Headers) -> list[tuple[str, str | bytes | None]]:
    """ValueError for a name the library would cut short (a NUL) or crash on (a lone surrogate)."""
    for name in headers:
        if b"\0" in name.encode():
            raise ValueError(f"header name {name!r} holds a NUL")
    return list(headers.items())


def decode_key(raw: bytes | None) -> Key:
    return UUID(raw.decode("ascii")) if raw is not None and _UUID_TEXT.fullmatch(raw) else raw


def place_of(message: Message) -> ProviderPartition:
    return ProviderPartition(message.topic() or "", _number(message.partition()))


def to_record(message: Message) -> Record:
    """A stored message as a record. Of repeated headers the last counts; null and empty are the same."""
    place = place_of(message)
    return Record(
        place.topic,
        place.partition,
        _number(message.offset()),
        message.timestamp()[1],
        decode_key(_bytes(message.key())),
        _headers(message),
        _bytes(message.value()) or b"",
    )


def _headers(message: Message) -> Headers:
    stored = message.headers() or []
    pairs = stored.items() if isinstance(stored, dict) else stored
    return {name: _bytes(value) or b"" for name, value in pairs}


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _number(value: int | None) -> int:
    """The library types as optional what a stored message always has."""
    return -1 if value is None else value
