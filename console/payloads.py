"""Bytes, shown to people: bounded, honest about what is left out, and never trusted."""

import base64
import binascii
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from queueapi.selectors.message_shapes import readable
from queueapi.selectors.payload_values import Decoded, as_written, decode_payload, indented
from queuecore.errors import UndecodableMessage
from queuecore.messages import TIMESTAMP, decode_millis
from queuecore.messagetypes import MessageForm

MAX_TEXT_BYTES = 64 * 1024
# What is read from a payload is longer than that: names are not in it, and what is nested is indented.
MAX_JSON_CHARACTERS = 4 * MAX_TEXT_BYTES
MAX_HEX_BYTES = 4 * 1024
MAX_HEADER_BYTES = 1024
HEX_WIDTH = 16

_TIMES = {TIMESTAMP, "expireTs"}


@dataclass(frozen=True, slots=True)
class Shown:
    """`text` stands for the first `shown_bytes` of `size` bytes. `type` is the message type that they were decoded by,
    and `raw` how they look without it. `notes` say in sentences what the text leaves out, or why it is not decoded."""

    kind: Literal["JSON", "text", "bytes", "empty"]
    text: str
    size: int
    shown_bytes: int
    at: datetime | None = None
    type: str = ""
    raw: "Shown | None" = None
    notes: tuple[str, ...] = ()

    @property
    def is_cut(self) -> bool:
        return self.shown_bytes < self.size


def show_payload(data: bytes, message_form: MessageForm | None = None) -> Shown:
    """By its message type, where there is one and it fits; else pretty JSON, else text, else a hex dump."""
    raw = _show_raw(data)
    if message_form is None or not data:
        return raw
    try:
        decoded = decode_payload(message_form, data, MAX_TEXT_BYTES)
    except UndecodableMessage as error:
        return replace(raw, notes=(why_undecoded(message_form, error),))
    text, is_whole = indented(decoded.value, MAX_JSON_CHARACTERS)
    notes = unnamed(message_form, decoded)
    if not is_whole:
        notes = (f"The first {MAX_JSON_CHARACTERS:,} characters of its JSON.", *notes)
    return Shown("JSON", text, raw.size, raw.size, type=message_form.name, raw=raw, notes=notes)


def why_undecoded(message_form: MessageForm, error: UndecodableMessage) -> str:
    return f"Its queue carries {message_form.name}, and it could not be decoded so: {error.message}."


def unnamed(message_form: MessageForm, decoded: Decoded) -> tuple[str, ...]:
    """What its JSON does not tell, if anything."""
    if not decoded.unnamed_bytes:
        return ()
    return (f"{decoded.unnamed_bytes:,} bytes of it are of fields that {message_form.name} does not name.",)


def show_headers(encoded: Mapping[str, str]) -> list[tuple[str, Shown]]:
    """Headers from their base64, each as what its name says it is."""
    return [(name, _show_header(name, value)) for name, value in sorted(encoded.items())]


def indented_text(data: bytes, most_characters: int = MAX_JSON_CHARACTERS) -> str | None:
    """JSON with a value a line; None for what is none, or longer than that."""
    try:
        value = json.loads(data)
        as_written(value)
    except (ValueError, RecursionError, UndecodableMessage):
        return None
    text, is_whole = indented(value, most_characters)
    return text if is_whole else None


def hex_dump(data: bytes) -> str:
    """Sixteen bytes a line: offset, hex, and what is printable."""
    return "\n".join(_hex_line(data, start) for start in range(0, len(data), HEX_WIDTH))


def _show_raw(data: bytes) -> Shown:
    size = len(data)
    if not data:
        return Shown("empty", "", 0, 0)
    text = readable(data[:MAX_TEXT_BYTES], is_cut=size > MAX_TEXT_BYTES)
    if text is None:
        return Shown("bytes", hex_dump(data[:MAX_HEX_BYTES]), size, min(size, MAX_HEX_BYTES))
    pretty = indented_text(data) if size <= MAX_TEXT_BYTES else None
    if pretty is None:
        return Shown("text", text, size, min(size, MAX_TEXT_BYTES))
    return Shown("JSON", pretty, size, size)


def _show_header(name: str, encoded: str) -> Shown:
    try:
        value = base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return Shown("text", str(encoded)[:MAX_HEADER_BYTES], len(str(encoded)), MAX_HEADER_BYTES)
    if name in _TIMES and (at := _time(value)):
        return Shown("text", "", len(value), len(value), at)
    size, value = len(value), value[:MAX_HEADER_BYTES]
    text = readable(value, is_cut=size > len(value))
    return Shown("bytes" if text is None else "text", value.hex(" ") if text is None else text, size, len(value))


def _time(value: bytes) -> datetime | None:
    try:
        return datetime.fromtimestamp(decode_millis(value) / 1000, tz=UTC)
    except (ArithmeticError, OSError, ValueError, struct.error):
        return None


def _hex_line(data: bytes, start: int) -> str:
    row = data[start : start + HEX_WIDTH]
    seen = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
    return f"{start:08x}  {row.hex(' '):<{HEX_WIDTH * 3 - 1}}  {seen}"
