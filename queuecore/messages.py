"""What a message is, before and after a provider has stored it."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from uuid import UUID

Key = UUID | bytes | None
Headers = Mapping[str, bytes]

NO_HEADERS: Headers = MappingProxyType({})

PRODUCER_ID = "producerId"
TIMESTAMP = "ts"
REPLAY_ID = "__queue.replay.id"
REPLAY_LETTER = "__queue.replay.letter"
TENANT_ID = "tenantId"

_MILLISECONDS = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """What a producer sends. Messages with the same key keep their order."""

    key: Key
    data: bytes
    headers: Headers = field(default_factory=lambda: NO_HEADERS)


@dataclass(frozen=True, slots=True)
class Record:
    """A message as a provider gives it back."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Key
    headers: Headers
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where a sent message was stored."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


def encode_millis(value: int) -> bytes:
    """8-byte big-endian milliseconds, the wire form of `ts`."""
    return _MILLISECONDS.pack(value)


def decode_millis(value: bytes) -> int:
    milliseconds: int = _MILLISECONDS.unpack(value)[0]
    return milliseconds


def text_header(headers: Headers, name: str) -> str | None:
    """A header's UTF-8 text, or None where it is absent. Undecodable bytes are shown, never raised."""
    value = headers.get(name)
    return None if value is None else value.decode("utf-8", errors="replace")
