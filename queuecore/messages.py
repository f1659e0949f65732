"""What a message is, before and after a provider has stored it.

A million of these pass through a process every second, so they are tuples: made by C code from whole columns, and
decoded where they are touched.
"""

import struct
from collections import namedtuple
from collections.abc import Callable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from uuid import UUID

Key = UUID | bytes | None
Headers = Mapping[str, bytes]

NO_HEADERS: Headers = MappingProxyType({})


class OwnHeaders(dict[str, bytes]):
    """Headers for a message that is sent on as what it is: that it is a replay stays said. Of any other headers that
    are passed on, that is left out."""


PRODUCER_ID = "producerId"
TIMESTAMP = "ts"
# Where in its producer a message was sent, for debugging.
THREAD_NAME = "threadName"
STACK_TRACE = "stackTrace"
REQUEST_ID = "requestId"
RESPONSE_TOPIC = "responseTopic"
EXPIRE_TS = "expireTs"
ERROR_CODE = "errorCode"
ERROR_MESSAGE = "errorMessage"
REPLAY_PREFIX = "__queue.replay."
REPLAY_ID = "__queue.replay.id"
REPLAY_LETTER = "__queue.replay.letter"
# How often the message has been replayed, this time included.
REPLAY_COUNT = "__queue.replay.count"
TENANT_ID = "tenantId"
TOMBSTONE = "__queue.tombstone"
# What tells which process sent a message, from where in it, and where that waits for an answer.
OF_SENDERS = frozenset((PRODUCER_ID, THREAD_NAME, STACK_TRACE, RESPONSE_TOPIC))

_MILLISECONDS = struct.Struct(">q")


class QueueMessage(NamedTuple):
    """What a producer sends. Messages with the same key keep their order."""

    key: Key
    data: bytes
    headers: Headers = NO_HEADERS

    @classmethod
    def tombstone(cls, key: UUID | bytes) -> "QueueMessage":
        """A message that says: there is nothing under this key any more. Compaction removes what came before."""
        return cls(key, b"", {TOMBSTONE: b""})


class RecordSource(Protocol):
    """Where a record's rarely touched parts are decoded from: a batch as a provider keeps it."""

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    def key(self, index: int) -> Key: ...

    def headers(self, index: int) -> Headers: ...


class SingleSource(NamedTuple):
    """The source of a record that came alone, already decoded."""

    topic: str
    partition: int
    the_key: Key
    the_headers: Headers

    def key(self, index: int) -> Key:  # noqa: ARG002
        return self.the_key

    def headers(self, index: int) -> Headers:  # noqa: ARG002
        return self.the_headers


_Items = namedtuple("_Items", "_0 _1 _2 _3 _4 _5 _6 _7 _8", rename=True)


def item(index: int) -> Any:
    """An attribute that is this item of a tuple. It is a named tuple's own, which is read without any call."""
    return getattr(_Items, f"_{index}")


class Record(tuple[int, int, bytes, int, RecordSource]):
    """A message as a provider gives it back. Immutable; equal when all its parts are.

    The tuple is (offset, timestamp_ms, data, index, source): what everyone touches is there, the rest is asked of
    the source. Providers make them in bulk with `tuple.__new__`; everyone else calls `Record(...)`.
    """

    __slots__ = ()

    offset: int = item(0)
    timestamp_ms: int = item(1)
    data: bytes = item(2)

    def __new__(
        cls, topic: str, partition: int, offset: int, timestamp_ms: int, key: Key, headers: Headers, data: bytes
    ) -> "Record":
        return tuple.__new__(cls, (offset, timestamp_ms, data, 0, SingleSource(topic, partition, key, headers)))

    @property
    def topic(self) -> str:
        return self[4].topic

    @property
    def partition(self) -> int:
        return self[4].partition

    @property
    def key(self) -> Key:
        return self[4].key(self[3])

    @property
    def headers(self) -> Headers:
        return self[4].headers(self[3])

    @property
    def size(self) -> int:
        return len(self[2])

    @property
    def is_tombstone(self) -> bool:
        return not self[2] and TOMBSTONE in self.headers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._parts() == other._parts()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        where = f"{self.topic}[{self.partition}]@{self.offset}"
        return f"Record({where}, timestamp_ms={self.timestamp_ms}, key={self.key!r}, {self.size} bytes)"

    def __reduce__(self) -> tuple[Any, ...]:
        topic, partition, offset, timestamp_ms, key, headers, data = self._parts()
        return Record, (topic, partition, offset, timestamp_ms, key, dict(headers), data)

    def _parts(self) -> tuple[str, int, int, int, Key, Headers, bytes]:
        return self.topic, self.partition, self.offset, self.timestamp_ms, self.key, self.headers, self.data


# Records of one source are of one partition.
source_of: Callable[[Record], RecordSource] = itemgetter(4)


class RecordMetadata(NamedTuple):
    """Where a sent message was stored. With `acks=0` nobody knows the offset: it is `UNKNOWN_OFFSET`."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


UNKNOWN_OFFSET = -1


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


def number_header(headers: Headers, name: str) -> int:
    """The number a header's text is, or 0 where it is absent or none."""
    try:
        return int(headers.get(name, b""))
    except ValueError:
        return 0
