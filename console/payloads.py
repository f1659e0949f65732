"""Bytes, shown to people: bounded, honest about what is left out, and never trusted."""

import base64
import binascii
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from queueapi.selectors.message_shapes import readable
from queuecore.messages import TIMESTAMP, decode_millis

MAX_TEXT_BYTES = 64 * 1024
MAX_HEX_BYTES = 4 * 1024
MAX_HEADER_BYTES = 1024
HEX_WIDTH = 16

_TIMES = {TIMESTAMP, "expireTs"}


@dataclass(frozen=True, slots=True)
class Shown:
    """`text` stands for the first `shown_bytes` of `size` bytes."""

    kind: Literal["JSON", "text", "bytes", "empty"]
    text: str
    size: int
    shown_bytes: int
    at: datetime | None = None

    @property
    def is_cut(self) -> bool:
        return self.shown_bytes < self.size


def show_payload(data: bytes) -> Shown:
    """Pretty JSON, else text, else a hex dump."""
    size = len(data)
    if not data:
        return Shown("empty", "", 0, 0)
    text = readable(data[:MAX_TEXT_BYTES], is_cut=size > MAX_TEXT_BYTES)
    if text is None:
        return Shown("bytes", hex_dump(data[:MAX_HEX_BYTES]), size, min(size, MAX_HEX_BYTES))
    pretty = _pretty(text) if size <= MAX_TEXT_BYTES else None
    if pretty is None:
        return Shown("text", text, size, min(size, MAX_TEXT_BYTES))
    return Shown("JSON", pretty, size, size)


def show_headers(encoded: Mapping[str, str]) -> list[tuple[str, Shown]]:
    """Headers from their base64, each as what its name says it is."""
    return [(name, _show_header(name, value)) for name, value in sorted(encoded.items())]


def hex_dump(data: bytes) -> str:
    """Sixteen bytes a line: offset, hex, and what is printable."""
    return "\n".join(_hex_line(data, start) for start in range(0, len(data), HEX_WIDTH))


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


def _pretty(text: str) -> str | None:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _time(value: bytes) -> datetime | None:
    try:
        return datetime.fromtimestamp(decode_millis(value) / 1000, tz=UTC)
    except (ArithmeticError, OSError, ValueError, struct.error):
        return None


def _hex_line(data: bytes, start: int) -> str:
    row = data[start : start + HEX_WIDTH]
    seen = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
    return f"{start:08x}  {row.hex(' '):<{HEX_WIDTH * 3 - 1}}  {seen}"
