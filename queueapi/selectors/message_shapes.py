"""Messages for people and programs to read: bounded, honest about what is left out, and never trusted."""

import base64
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NoReturn
from uuid import UUID

from queueapi.selectors.payload_values import as_written, decode_payload
from queuecore.errors import UndecodableMessage
from queuecore.messages import EXPIRE_TS, REQUEST_ID, TENANT_ID, TIMESTAMP, Record, decode_millis, text_header
from queuecore.messagetypes import MessageForm

PREVIEW_BYTES: Final = 4 * 1024
MAX_PREVIEW_BYTES: Final = 16 * 1024
# The largest that a topic takes, and room to spare.
WHOLE_BYTES: Final = 16 * 1024 * 1024

_HEADER_BYTES: Final = 1024
_MOST_HEADERS: Final = 100
# JSON may be far longer than what it is decoded from: names are not in a payload.
_JSON_TIMES: Final = 4


class PayloadForm(StrEnum):
    """As what a payload is shown. `auto`: the topic's message type, else JSON, else text, else hex."""

    AUTO = "auto"
    PROTOBUF = "protobuf"
    JSON = "json"
    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class ShownHeader:
    """`form` is `time`, `uuid`, `text` or `hex`: what the header's name says it is, or its bytes look like."""

    name: str
    value: str
    form: str
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """`payload` stands for all of the message's bytes, or for the first of them where it is truncated. `undecodable`
    says why it is in another form than the one asked for."""

    partition: int
    record: Record
    headers: tuple[ShownHeader, ...]
    form: PayloadForm
    type: str | None
    payload: Any
    payload_truncated: bool
    undecodable: str | None

    @property
    def key(self) -> str | None:
        key = self.record.key
        return shown_bytes(key)[0] if isinstance(key, bytes) else None if key is None else str(key)

    @property
    def tenant(self) -> str | None:
        return text_header(self.record.headers, TENANT_ID)

    @property
    def timestamp(self) -> datetime | None:
        return _instant(self.record.timestamp_ms)


@dataclass(frozen=True, slots=True)
class _Payload:
    form: PayloadForm
    value: Any
    truncated: bool = False
    type: str | None = None


class MessageShaper:
    """Shows the messages of one topic. `message_form` is what they are, where anybody said so."""

    def __init__(
        self, wanted: PayloadForm = PayloadForm.AUTO, most_bytes: int = PREVIEW_BYTES,
        message_form: MessageForm | None = None,
    ) -> None:  # fmt: skip
        self._wanted = wanted
        self._most_bytes = most_bytes
        self._message_form = message_form

    def show(self, partition: int, record: Record) -> ShownMessage:
        payload, undecodable = self._payload(record)
        return ShownMessage(
            partition, record, show_headers(record.headers), payload.form, payload.type, payload.value,
            payload.truncated, undecodable,
        )  # fmt: skip

    def _payload(self, record: Record) -> tuple[_Payload, str | None]:
        """As the first form that will do, and why the one asked for would not."""
        if record.is_tombstone:
            return _Payload(PayloadForm.TEXT, ""), "this is a tombstone: there is nothing under its key any more"
        why = None
        for form in _TRIED[self._wanted]:
            if form is PayloadForm.PROTOBUF and self._message_form is None:
                continue
            try:
                return self._as(form, record.data), why
            except UndecodableMessage as error:
                if form is PayloadForm.PROTOBUF or self._wanted is not PayloadForm.AUTO:
                    why = error.message
        return _as_hex(record.data, self._most_bytes), why

    def _as(self, form: PayloadForm, data: bytes) -> _Payload:
        """UndecodableMessage where it cannot be shown so."""
        if form is PayloadForm.PROTOBUF and self._message_form is not None:
            return self._as_protobuf(self._message_form, data)
        return _SHOWN[form](data, self._most_bytes)

    def _as_protobuf(self, message_form: MessageForm, data: bytes) -> _Payload:
        decoded = decode_payload(message_form, data, self._most_bytes)
        most = self._most_bytes * _JSON_TIMES
        if len(decoded.text) > most:
            return _Payload(PayloadForm.PROTOBUF, decoded.text[:most], truncated=True, type=message_form.name)
        return _Payload(PayloadForm.PROTOBUF, decoded.value, type=message_form.name)


def show_headers(headers: Mapping[str, bytes]) -> tuple[ShownHeader, ...]:
    """By name; of more than anybody would read, the first."""
    return tuple(_show_header(name, headers[name]) for name in sorted(headers)[:_MOST_HEADERS])


def shown_bytes(data: bytes, most: int = _HEADER_BYTES) -> tuple[str, str, bool]:
    """The text that they are, or their hex; which of the two; and whether some are left out."""
    text = readable(data[:most], is_cut=len(data) > most)
    return (data[:most].hex(), "hex", len(data) > most) if text is None else (text, "text", len(data) > most)


def readable(data: bytes, *, is_cut: bool) -> str | None:
    """The text, or None where these bytes are none. The cut may have split the last character."""
    for spare in range(4 if is_cut else 1):
        try:
            text = data[: len(data) - spare].decode()
        except UnicodeDecodeError:
            continue
        return text if all(character.isprintable() or character in "\t\n\r" for character in text) else None
    return None


def _show_header(name: str, value: bytes) -> ShownHeader:
    if name in (TIMESTAMP, EXPIRE_TS) and (at := _header_time(value)):
        return ShownHeader(name, at.isoformat(), "time")
    if name == REQUEST_ID and len(value) == 16:
        return ShownHeader(name, str(UUID(bytes=value)), "uuid")
    return ShownHeader(name, *shown_bytes(value))


def _header_time(value: bytes) -> datetime | None:
    try:
        return _instant(decode_millis(value))
    except struct.error:
        return None


def _instant(milliseconds: int) -> datetime | None:
    """None for a time that a producer made up."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    except (ArithmeticError, OSError, ValueError):
        return None


def _as_json(data: bytes, most: int) -> _Payload:
    if len(data) > most:
        raise UndecodableMessage(f"the payload has {len(data)} bytes; up to {most} are read as JSON here")
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UndecodableMessage(f"the payload is no JSON: {str(error)[:100]}") from error
    as_written(value)
    return _Payload(PayloadForm.JSON, value)


def _as_text(data: bytes, most: int) -> _Payload:
    text = readable(data[:most], is_cut=len(data) > most)
    if text is None:
        raise UndecodableMessage("the payload is no text")
    return _Payload(PayloadForm.TEXT, text, truncated=len(data) > most)


def _as_hex(data: bytes, most: int) -> _Payload:
    return _Payload(PayloadForm.HEX, data[:most].hex(), truncated=len(data) > most)


def _as_base64(data: bytes, most: int) -> _Payload:
    return _Payload(PayloadForm.BASE64, base64.b64encode(data[:most]).decode(), truncated=len(data) > most)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


_SHOWN: Final[Mapping[PayloadForm, Callable[[bytes, int], _Payload]]] = {
    PayloadForm.JSON: _as_json,
    PayloadForm.TEXT: _as_text,
    PayloadForm.HEX: _as_hex,
    PayloadForm.BASE64: _as_base64,
}
_TRIED: Final = {
    **{form: (form,) for form in PayloadForm},
    PayloadForm.AUTO: (PayloadForm.PROTOBUF, PayloadForm.JSON, PayloadForm.TEXT),
}
