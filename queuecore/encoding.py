"""Messages on the wire: Protocol Buffers as payload, and what their headers say about where they come from.

Reading raises InvalidMessage (a payload: UndecodableMessage), which says what was expected and where it was not found.
"""

import threading
import traceback
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from google.protobuf.message import DecodeError, EncodeError, Message

from queuecore.errors import InvalidMessage, UndecodableMessage
from queuecore.messages import (
    ERROR_CODE,
    ERROR_MESSAGE,
    EXPIRE_TS,
    NO_HEADERS,
    PRODUCER_ID,
    REQUEST_ID,
    RESPONSE_TOPIC,
    STACK_TRACE,
    THREAD_NAME,
    TIMESTAMP,
    Headers,
    Key,
    QueueMessage,
    Record,
    decode_millis,
    encode_millis,
    text_header,
)

MAX_STACK_CHARACTERS: Final = 8_000

M = TypeVar("M", bound=Message)


def encode(message: Message, key: Key = None, headers: Headers = NO_HEADERS) -> QueueMessage:
    """A message to send, with this as its payload. InvalidMessage where a field that must be set is not."""
    try:
        return QueueMessage(key, message.SerializeToString(), headers)
    except EncodeError as error:
        raise InvalidMessage(f"a {message.DESCRIPTOR.full_name} cannot be sent as it is: {error}") from error


def decode(record: Record, message_type: type[M]) -> M:
    """What the record holds; UndecodableMessage where it holds something else. A tombstone holds nothing, which is no
    empty message."""
    where = f"{record.topic}[{record.partition}]@{record.offset}"
    name = message_type.DESCRIPTOR.full_name
    fields = {"topic": record.topic, "partition": record.partition, "offset": record.offset, "type": name}
    if record.is_tombstone:
        raise UndecodableMessage(f"{where} is a tombstone, not a {name}", **fields)
    try:
        return message_type.FromString(record.data)
    except DecodeError as error:
        raise UndecodableMessage(f"{where} is not a {name}, in {record.size} bytes: {error}", **fields) from error


def origin_headers(producer_id: str, now_ms: int, *, debug: bool = False) -> dict[str, bytes]:
    """Who sends, and when; for debugging, also from which thread and which line."""
    headers = {PRODUCER_ID: producer_id.encode(), TIMESTAMP: encode_millis(now_ms)}
    if debug:
        stack = "".join(traceback.format_stack()[:-1])
        headers[THREAD_NAME] = threading.current_thread().name.encode()
        headers[STACK_TRACE] = stack[-MAX_STACK_CHARACTERS:].encode(errors="backslashreplace")
    return headers


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """What makes a message a request: its id, where the answer goes, and until when anyone waits for it."""

    request_id: UUID
    response_topic: str
    expire_at_ms: int

    def headers(self) -> dict[str, bytes]:
        return {
            REQUEST_ID: self.request_id.bytes,
            RESPONSE_TOPIC: self.response_topic.encode(),
            EXPIRE_TS: encode_millis(self.expire_at_ms),
        }

    @classmethod
    def read(cls, headers: Headers) -> "RequestHeaders":
        topic = text_header(headers, RESPONSE_TOPIC)
        if not topic:
            raise InvalidMessage(f"a request needs the header {RESPONSE_TOPIC}: nobody knows where the answer goes")
        return cls(read_request_id(headers), topic, decode_millis(_sized(headers, EXPIRE_TS, 8)))


def read_request_id(headers: Headers) -> UUID:
    """Which request a message is, or answers."""
    return UUID(bytes=_sized(headers, REQUEST_ID, 16))


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """What a responder that failed answers with."""

    code: str
    message: str

    def headers(self) -> dict[str, bytes]:
        return {
            ERROR_CODE: self.code.encode(errors="backslashreplace"),
            ERROR_MESSAGE: self.message.encode(errors="backslashreplace"),
        }

    @classmethod
    def read(cls, headers: Headers) -> "ErrorReply | None":
        """The error, or None where the reply is none."""
        code = text_header(headers, ERROR_CODE)
        return None if code is None else cls(code, text_header(headers, ERROR_MESSAGE) or "")


def _sized(headers: Headers, name: str, size: int) -> bytes:
    value = headers.get(name)
    if value is None or len(value) != size:
        found = "there is none" if value is None else f"it has {len(value)}"
        raise InvalidMessage(f"the header {name} must have {size} bytes; {found}", header=name)
    return value
