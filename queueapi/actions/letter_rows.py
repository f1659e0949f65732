"""A dead letter as a row of the index. Its headers are anybody's bytes: here alone they become what a row can hold."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from queueapi.models import DeadLetter, Queue, Tenant
from queuecore.deadletter.envelope import PREFIX, original_headers, read_story
from queuecore.messages import REPLAY_ID, REPLAY_LETTER, TENANT_ID, Record, text_header

QUEUE_ID: Final = f"{PREFIX}queue.id"

_MAX_INTEGER: Final = 2**31 - 1
_MAX_BIG_INTEGER: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Short of the last year a datetime can hold, so that no time zone moves it beyond.
_MAX_MILLISECONDS: Final = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def to_row(record: Record, queue: Queue, tenants: Mapping[UUID, Tenant]) -> DeadLetter:
    """The letter, not yet saved. What its headers say wrongly is cut to the nearest value a row can hold."""
    story = read_story(record.headers)
    replayed, tenant = header_id(record, REPLAY_LETTER), header_id(record, TENANT_ID)
    return DeadLetter(
        queue=queue,
        tenant=tenants.get(tenant) if tenant else None,
        letter_topic=record.topic,
        letter_partition=record.partition,
        letter_offset=record.offset,
        topic=_text(story.topic, 249),
        # A dead-letter topic has its queue's partitions; the provider's own number may always be 0.
        partition=record.partition,
        offset=_number(story.offset, _MAX_BIG_INTEGER),
        sent_at=_time(story.timestamp_ms),
        **_key_fields(record),
        headers=_encoded_headers(record),
        payload=record.data,
        handler=_text(story.handler, 100),
        consumer_group=_text(story.group, 249),
        reason=_text(story.reason, 50),
        exception_class=_text(story.exception_class, 200),
        exception_message=_text(story.exception_message),
        stack_trace=_text(story.stack_trace),
        fingerprint=_text(story.fingerprint, 16),
        attempts=_number(story.attempts, _MAX_INTEGER),
        first_failed_at=_time(story.first_failed_at_ms),
        failed_at=_time(story.failed_at_ms),
        replay_of=DeadLetter.objects.filter(id=replayed).first() if replayed else None,
    )


def header_id(record: Record, name: str) -> UUID | None:
    """The id a header holds, or None where it holds something else."""
    text = text_header(record.headers, name)
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _key_fields(record: Record) -> dict[str, Any]:
    return {"key": record.key} if isinstance(record.key, UUID) else {"raw_key": record.key}


def _encoded_headers(record: Record) -> dict[str, str]:
    """Headers without our marks; values as base64, since they may be any bytes."""
    own = original_headers(record.headers)
    return {_text(name): base64.b64encode(own[name]).decode() for name in own if name not in (REPLAY_ID, REPLAY_LETTER)}


def _text(value: str, limit: int | None = None) -> str:
    """What any database can hold: PostgreSQL refuses NUL and lone surrogates, and names have their length."""
    return value.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")[:limit]


def _number(value: int, most: int) -> int:
    return min(max(value, 0), most)


def _time(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=_number(milliseconds, _MAX_MILLISECONDS))
