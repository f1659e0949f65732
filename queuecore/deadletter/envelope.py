"""A dead letter is the original message, untouched, plus string headers that tell its story."""

import hashlib
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from queuecore.messages import Headers, QueueMessage, Record, text_header

PREFIX: Final = "__queue.errors."
MAX_MESSAGE_CHARACTERS: Final = 2_000
MAX_STACK_CHARACTERS: Final = 8_000

_VARYING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FailureStory:
    """Why a message was given up. All text is bounded."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    queue_id: str
    group: str
    handler: str
    reason: str
    exception_class: str
    exception_message: str
    stack_trace: str
    attempts: int
    first_failed_at_ms: int
    failed_at_ms: int
    fingerprint: str

    def headers(self) -> dict[str, bytes]:
        return {PREFIX + name.replace("_", "."): _encode(str(getattr(self, name))) for name in self.__slots__}


_NUMBERS = {"partition", "offset", "timestamp_ms", "attempts", "first_failed_at_ms", "failed_at_ms"}


def read_story(headers: Headers) -> FailureStory:
    """The story in a letter's headers; what is missing reads as empty or 0, so that any letter can be shown."""
    values: dict[str, str | int] = {}
    for name in FailureStory.__slots__:
        text = text_header(headers, PREFIX + name.replace("_", ".")) or ""
        values[name] = _number(text) if name in _NUMBERS else text
    return FailureStory(**values)  # type: ignore[arg-type]


def original_headers(headers: Headers) -> dict[str, bytes]:
    """The headers the message had before it became a letter."""
    return {name: value for name, value in headers.items() if not name.startswith(PREFIX)}


def to_letter(record: Record, story: FailureStory) -> QueueMessage:
    return QueueMessage(record.key, record.data, {**original_headers(record.headers), **story.headers()})


def describe_exception(error: BaseException) -> Mapping[str, str]:
    """Class, bounded message, bounded stack trace and fingerprint of an exception."""
    name = type(error).__qualname__ if type(error).__module__ == "builtins" else _qualified(type(error))
    stack = "".join(traceback.format_exception(error))
    message = _message_of(error)
    return {
        "exception_class": name,
        "exception_message": message[:MAX_MESSAGE_CHARACTERS],
        "stack_trace": stack[-MAX_STACK_CHARACTERS:],
        "fingerprint": fingerprint(name, message),
    }


def fingerprint(exception_class: str, message: str) -> str:
    """The same for failures that differ only in numbers and ids."""
    shape = _VARYING.sub("#", message[:MAX_MESSAGE_CHARACTERS])
    return hashlib.sha256(_encode(f"{exception_class}\n{shape}")).hexdigest()[:16]


def _qualified(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _message_of(error: BaseException) -> str:
    """An exception's text, even where its `__str__` is itself broken: the letter must be written."""
    try:
        return str(error)
    except Exception as broken:
        return f"<no message: {type(broken).__name__} in __str__>"


def _encode(text: str) -> bytes:
    """UTF-8, with what UTF-8 cannot hold (a lone surrogate) written as an escape."""
    return text.encode(errors="backslashreplace")


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0
