"""A whole message as bytes, for the side store: key and headers as JSON, with their length in front; then the data."""

import base64
import json
import struct
from typing import Final
from uuid import UUID

from queuecore.errors import InvalidMessage
from queuecore.messages import Key, QueueMessage

_LENGTH: Final = struct.Struct(">I")


def pack_message(message: QueueMessage) -> bytes:
    headers = {name: _text(value) for name, value in message.headers.items()}
    head = json.dumps({"key": _key_text(message.key), "headers": headers}).encode()
    return _LENGTH.pack(len(head)) + head + message.data


def unpack_message(body: bytes) -> QueueMessage:
    """InvalidMessage for what is no packed message."""
    try:
        [length] = _LENGTH.unpack_from(body)
        end = _LENGTH.size + length
        head = json.loads(body[_LENGTH.size : end])
        headers = {name: base64.b64decode(text) for name, text in head["headers"].items()}
        return QueueMessage(_key_of(head["key"]), body[end:], headers)
    except (struct.error, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidMessage(f"{len(body)} bytes are no packed message: {error}; look at who wrote them") from error


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _key_text(key: Key) -> dict[str, str] | None:
    if key is None:
        return None
    return {"uuid": str(key)} if isinstance(key, UUID) else {"bytes": _text(key)}


def _key_of(told: dict[str, str] | None) -> Key:
    if told is None:
        return None
    return UUID(told["uuid"]) if "uuid" in told else base64.b64decode(told["bytes"])
