"""A dead letter is the original message, untouched, plus string headers that tell its story."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypedDict

from queuecore.deadletter.attempts import MAX_ATTEMPT_CHARACTERS, FailedAttempt, read_attempts, write_attempts
from queuecore.deadletter.fingerprint import causes_of, class_name, fingerprint, place_of
from queuecore.deadletter.foreign import Origin, family_of
from queuecore.messages import REPLAY_COUNT, Headers, QueueMessage, Record, number_header, text_header

PREFIX: Final = "__queue.errors."
MAX_CLASS_CHARACTERS: Final = 500
MAX_MESSAGE_CHARACTERS: Final = 2_000
MAX_STACK_CHARACTERS: Final = 8_000

# Of one line of a stack trace: a long message must not push out where it was raised.
_MAX_LINE_CHARACTERS: Final = 1_000


class Stage(StrEnum):
    """Where a message was when it failed.

    HANDLE  in its handler
    DECODE  being read: it is not what its queue holds
    SEND    done, but what its handler sent could not be stored
    CRASH   in a handler whose process did not survive it
    """

    HANDLE = "handle"
    DECODE = "decode"
    SEND = "send"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class FailureStory:
    """Why a message was given up. All text is bounded.

    topic … timestamp_ms  the message: where it was, and when it was sent
    tenant_id             whose it is; empty: nobody said
    queue_id, group       whose messages these are, and for whom they were read
    service_id, handler   who tried it, with what
    reason, stage         why it was given up, and where it was then
    attempts              how often it was handed to its handler
    replay_count          how often it had been replayed before
    epoch                 of the assignment of its partition under which it was tried; None: it had none
    fingerprint           the same for failures that likely have one cause
    failures              what its attempts ended with, those that are told; the last is what this is the letter of
    origin                who wrote the letter; not in the headers, but seen by them
    """

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
    tenant_id: str = ""
    service_id: str = ""
    stage: str = Stage.HANDLE
    replay_count: int = 0
    epoch: int | None = None
    failures: tuple[FailedAttempt, ...] = ()
    origin: Origin = Origin.SWITCHYARD

    def headers(self) -> dict[str, bytes]:
        told = {header: getattr(self, name) for name, header in _HEADERS.items()}
        told[_HEADERS["failures"]] = write_attempts(self.failures) or None
        return {header: _encode(str(value)) for header, value in told.items() if value is not None}


_HEADERS: Final = {name: PREFIX + name.replace("_", ".") for name in FailureStory.__annotations__ if name != "origin"}
FINGERPRINT: Final = _HEADERS["fingerprint"]
_NUMBERS: Final = frozenset(name for name, kind in FailureStory.__annotations__.items() if kind is int)
# Numbers whose absence means something.
_OPTIONAL: Final = frozenset({"epoch"})
_UNTOLD: Final[Mapping[str, Any]] = {
    **{name: None if name in _OPTIONAL else 0 if name in _NUMBERS else "" for name in _HEADERS},
    "failures": (),
}


def read_story(headers: Headers) -> FailureStory:
    """The story in a letter's headers, ours or those of others; what is missing reads as empty or 0, so that any letter
    can be shown."""
    if _is_ours(headers):
        told: dict[str, Any] = {name: _read(headers, name) for name in _HEADERS}
        return _story({**told, "failures": read_attempts(told["failures"])})
    if (family := family_of(headers)) is None:
        return _story({}, Origin.UNKNOWN)
    told = family.read(headers)
    print_of = fingerprint(str(told.get("exception_class", "")), str(told.get("exception_message", "")))
    return _story({**told, "fingerprint": print_of}, family.origin)


def original_headers(headers: Headers) -> dict[str, bytes]:
    """The headers the message had before it became a letter, whoever made it one."""
    if not _is_ours(headers) and (family := family_of(headers)) is not None:
        return _without(headers, *family.prefixes)
    return _without(headers, PREFIX)


def to_letter(record: Record, story: FailureStory) -> QueueMessage:
    return QueueMessage(record.key, record.data, {**_without(record.headers, PREFIX), **story.headers()})


def replay_count_of(headers: Headers) -> int:
    """How often a message has been replayed; 0 where it does not say."""
    return max(number_header(headers, REPLAY_COUNT), 0)


class DescribedException(TypedDict):
    """The fields of a story that its exception tells."""

    exception_class: str
    exception_message: str
    stack_trace: str
    fingerprint: str


def describe_exception(error: BaseException) -> DescribedException:
    """Class, bounded message, bounded stack trace and fingerprint of an exception."""
    name, message = class_name(error), _message_of(error)
    return {
        "exception_class": name[:MAX_CLASS_CHARACTERS],
        "exception_message": message[:MAX_MESSAGE_CHARACTERS],
        "stack_trace": _stack_trace_of(error),
        "fingerprint": fingerprint(name, message, place_of(error), *causes_of(error)),
    }


def describe_attempt(number: int, failed_at_ms: int, outcome: str, error: BaseException | None) -> FailedAttempt:
    """What a letter tells of one of several attempts."""
    fault, message = ("", "") if error is None else (class_name(error), _message_of(error))
    return FailedAttempt(
        number, failed_at_ms, outcome, fault[:MAX_ATTEMPT_CHARACTERS], message[:MAX_ATTEMPT_CHARACTERS]
    )


def _is_ours(headers: Headers) -> bool:
    return any(name.startswith(PREFIX) for name in headers)


def _read(headers: Headers, name: str) -> str | int | None:
    if name in _OPTIONAL:
        return number_header(headers, _HEADERS[name]) if headers.get(_HEADERS[name], b"").isdigit() else None
    if name in _NUMBERS:
        return number_header(headers, _HEADERS[name])
    return text_header(headers, _HEADERS[name]) or ""


def _story(told: Mapping[str, Any], origin: Origin = Origin.SWITCHYARD) -> FailureStory:
    return FailureStory(**{**_UNTOLD, **told}, origin=origin)


def _without(headers: Headers, *prefixes: str) -> dict[str, bytes]:
    return {name: value for name, value in headers.items() if not name.startswith(prefixes)}


def _message_of(error: BaseException) -> str:
    """An exception's text, even where its `__str__` is itself broken: the letter must be written."""
    try:
        return str(error)
    except Exception as broken:
        return f"<no message: {type(broken).__name__} in __str__>"


def _stack_trace_of(error: BaseException) -> str:
    """The end of it: there it says where the exception was raised, and which."""
    try:
        lines = traceback.format_exception(error)
    except Exception as broken:
        return f"<no stack trace: {type(broken).__name__} while it was written>"
    return "".join(map(_shorten, lines))[-MAX_STACK_CHARACTERS:]


def _shorten(line: str) -> str:
    return line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[:_MAX_LINE_CHARACTERS]}…\n"


def _encode(text: str) -> bytes:
    """UTF-8, with what UTF-8 cannot hold (a lone surrogate) written as an escape."""
    return text.encode(errors="backslashreplace")
