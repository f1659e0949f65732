"""Payloads as values: decoded by their message type, and written so that people can read them. A payload is anybody's
bytes: how much is decoded and written is bounded."""

import json
from dataclasses import dataclass
from typing import Any, Final

from queuecore.errors import UndecodableMessage
from queuecore.messagetypes import MessageForm

_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class Decoded:
    """`text` is the value's JSON on one line. `unnamed_bytes` are of fields that the type does not name: the value has
    none of them."""

    value: dict[str, Any]
    text: str
    unnamed_bytes: int


def decode_payload(message_form: MessageForm, data: bytes, most_bytes: int) -> Decoded:
    """UndecodableMessage where it is something else, longer than that, or nothing that could be shown."""
    if len(data) > most_bytes:
        raise UndecodableMessage(f"the payload has {len(data)} bytes; up to {most_bytes} are decoded here")
    value, unnamed_bytes = message_form.to_json(data), message_form.unnamed_bytes(data)
    if unnamed_bytes and not value:
        # Many a text can be read as fields of some number.
        raise UndecodableMessage(f"the payload has none of the fields that {message_form.name} names")
    return Decoded(value, as_written(value), unnamed_bytes)


def as_written(value: object) -> str:
    """Its JSON on one line. UndecodableMessage for what could be read and cannot be written: too deep, or half of a
    character."""
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > _DEEPEST:
            raise UndecodableMessage(f"the payload is nested more than {_DEEPEST} deep")
        parts = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting += [(part, depth + 1) for part in parts]
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UndecodableMessage("the payload has half of a surrogate pair") from None
    return text


def indented(value: object, most: int) -> tuple[str, bool]:
    """The beginning of its JSON, a value a line, and whether that is all. What is nested is far longer so than in one
    line: no more is made than is asked for. For what `as_written` can write."""
    parts: list[str] = []
    length = 0
    for part in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(value):
        parts.append(part)
        length += len(part)
        if length > most:
            return "".join(parts)[:most], False
    return "".join(parts), True
