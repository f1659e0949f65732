"""A dead letter as rows of the index. Its headers are anybody's bytes: here alone they become what a row can hold."""

import hashlib
import re
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from queuecore.deadletter.attempts import MAX_ATTEMPT_CHARACTERS, MOST_ATTEMPTS, FailedAttempt
from queuecore.deadletter.envelope import FailureStory, original_headers, read_story
from queuecore.deadletter.foreign import Origin
from queuecore.deadletter.reading import load_message
from queuecore.errors import PayloadMissing
from queuecore.messages import REPLAY_LETTER, REPLAY_PREFIX, TENANT_ID, Headers, QueueMessage, Record, text_header
from queuecore.providers.base import QueueReader

_MAX_INTEGER: Final = 2**31 - 1
_MAX_BIG_INTEGER: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Short of the last year a datetime can hold, so that no time zone moves it beyond.
_MAX_MILLISECONDS: Final = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
# At the end of a topic that is one partition alone.
_NUMBERED: Final = re.compile(r"\.(\d{1,9})\Z")


@dataclass(frozen=True, slots=True)
class LetterRows:
    """What the index holds of one letter: its row without queue, tenant, group and what it is a replay of, which the
    database has to be asked for; and its body's row."""

    letter: dict[str, Any]
    body: dict[str, Any]
    queue_id: UUID | None
    tenant_id: UUID | None
    replay_of_id: UUID | None


def to_rows(record: Record, reader: QueueReader) -> LetterRows:
    """What to enter. What headers say wrongly is cut to the nearest value a row can hold. A payload that was too large
    for the topic is read from its side store; where it is gone, the row says why."""
    story = read_story(record.headers)
    message, missing = _message(record, reader)
    letter_id = letter_id_of(record)
    letter = {
        "id": letter_id,
        **_place(record),
        **_origin(record, story),
        **_failure(record, story),
        **_key_fields(message),
        "payload_size": len(message.data),
        "payload_missing": _text(missing, 500),
    }
    body = {
        "letter_id": letter_id,
        "headers": _encoded_headers(message.headers),
        "stack_trace": _text(story.stack_trace),
        "failures": [_attempt(attempt) for attempt in story.failures[:MOST_ATTEMPTS]] or None,
        "payload": message.data,
    }
    tenant = _uuid(story.tenant_id) or header_id(record, TENANT_ID)
    return LetterRows(letter, body, _uuid(story.queue_id), tenant, header_id(record, REPLAY_LETTER))


def letter_id_of(record: Record) -> UUID:
    """The same for the same letter whoever enters it, and rising with the time it was written: rows with neighbouring
    ids are neighbours on disk."""
    place = f"{record.topic}\n{record.partition}\n{record.offset}".encode()
    digest = hashlib.blake2b(place, digest_size=10).digest()
    time = _number(record.timestamp_ms, 2**48 - 1).to_bytes(6)
    return UUID(bytes=time + digest)


def is_other_letter(record: Record, known_id: UUID) -> bool:
    """Whether the letter with this id was at the record's place before: then it was written at another time. Ids that
    `letter_id_of` did not make tell nothing."""
    made = letter_id_of(record)
    return known_id != made and known_id.bytes[6:] == made.bytes[6:]


def header_id(record: Record, name: str) -> UUID | None:
    """The id a header holds, or None where it holds something else."""
    return _uuid(text_header(record.headers, name) or "")


def _message(record: Record, reader: QueueReader) -> tuple[QueueMessage, str]:
    """The message as it was, and why it is not all there."""
    try:
        return load_message(reader, record), ""
    except PayloadMissing as error:
        return QueueMessage(record.key, b"", original_headers(record.headers)), error.message


def _place(record: Record) -> dict[str, Any]:
    return {"letter_topic": record.topic, "letter_partition": record.partition, "letter_offset": record.offset}


def _origin(record: Record, story: FailureStory) -> dict[str, Any]:
    """Where the message was, and who tried it."""
    return {
        "topic": _text(story.topic, 249),
        "partition": _partition(record, story),
        "offset": _number(story.offset, _MAX_BIG_INTEGER),
        "sent_at": _time(story.timestamp_ms),
        "origin": story.origin.value,
        "service": _text(story.service_id, 100),
        "handler": _text(story.handler, 100),
        "consumer_group": _text(story.group, 249),
        "epoch": None if story.epoch is None else _number(story.epoch, _MAX_BIG_INTEGER),
        "replay_count": _number(story.replay_count, _MAX_INTEGER),
    }


def _partition(record: Record, story: FailureStory) -> int:
    """The queue's own number of it. Ours have it at the end of their topic's name, or are in a topic of all partitions:
    then the dead-letter topic has the same, as others' have."""
    told = _NUMBERED.search(story.topic) if story.origin == Origin.SWITCHYARD else None
    return _number(int(told[1]), _MAX_INTEGER) if told else record.partition


def _failure(record: Record, story: FailureStory) -> dict[str, Any]:
    """What went wrong. Who does not say when wrote the letter at that time."""
    failed_at_ms = story.failed_at_ms or record.timestamp_ms
    return {
        "stage": _text(story.stage, 16),
        "reason": _text(story.reason, 50),
        "exception_class": _text(story.exception_class, 500),
        "exception_message": _text(story.exception_message),
        "fingerprint": _text(story.fingerprint, 16),
        "attempts": _number(story.attempts, _MAX_INTEGER),
        "first_failed_at": _time(story.first_failed_at_ms or failed_at_ms),
        "failed_at": _time(failed_at_ms),
    }


def _attempt(attempt: FailedAttempt) -> dict[str, Any]:
    return {
        "number": _number(attempt.number, _MAX_INTEGER),
        "failed_at_ms": _number(attempt.failed_at_ms, _MAX_MILLISECONDS),
        "outcome": _text(attempt.outcome, 16),
        "fault": _text(attempt.fault, MAX_ATTEMPT_CHARACTERS),
        "message": _text(attempt.message, MAX_ATTEMPT_CHARACTERS),
    }


def _key_fields(message: QueueMessage) -> dict[str, Any]:
    is_id = isinstance(message.key, UUID)
    return {"key": message.key if is_id else None, "raw_key": None if is_id else message.key}


def _encoded_headers(headers: Headers) -> dict[str, str]:
    """Headers without our marks; values as base64, since they may be any bytes."""
    own = [name for name in headers if not name.startswith(REPLAY_PREFIX)]
    return {_text(name): b64encode(headers[name]).decode() for name in own}


@lru_cache(maxsize=10_000)
def _uuid(text: str) -> UUID | None:
    """The ids of queues and tenants are the same in many letters."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _text(value: str, limit: int | None = None) -> str:
    """What any database can hold: PostgreSQL refuses NUL and lone surrogates, and names have their length."""
    if value.isascii() and "\0" not in value:
        return value[:limit]
    return value.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")[:limit]


def _number(value: int, most: int) -> int:
    return min(max(value, 0), most)


def _time(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=_number(milliseconds, _MAX_MILLISECONDS))
