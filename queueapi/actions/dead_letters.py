"""Dead letters: into the index, out again as replays, and what came of it."""

import base64
import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from queueapi.actions.actor import Actor
from queueapi.actions.operations import start_operation
from queueapi.choices import LetterState
from queueapi.errors import NotReplayable
from queueapi.models import DeadLetter, Operation, Queue, Tenant
from queuecore.deadletter.envelope import PREFIX, original_headers, read_story
from queuecore.messages import REPLAY_ID, REPLAY_LETTER, TENANT_ID, QueueMessage, Record, text_header

logger = logging.getLogger(__name__)

QUEUE_ID = f"{PREFIX}queue.id"
REPLAY = "replay_letters"
MAX_REPLAY = 10_000


def index_letters(records: Sequence[Record]) -> int:
    """Enter letters into the index, each exactly once whatever is delivered twice. How many were new.

    A letter that came of a replay marks the one that was replayed as failed again, in the same transaction.
    """
    queues = Queue.objects.in_bulk({queue for record in records if (queue := _header_id(record, QUEUE_ID))})
    tenants = Tenant.objects.in_bulk({tenant for record in records if (tenant := _header_id(record, TENANT_ID))})
    with transaction.atomic():
        new = [letter for record in records if (letter := _to_letter(record, queues, tenants)) and not _known(letter)]
        DeadLetter.objects.bulk_create(new)
        failed_again = [letter.replay_of_id for letter in new if letter.replay_of_id]
        _change_state(failed_again, LetterState.REPLAYING, LetterState.FAILED_AGAIN)
    return len(new)


def replay_letters(actor: Actor, letter_ids: Iterable[UUID]) -> Operation:
    """Start sending these letters to the queue they came from. All or none: NotReplayable names what stands
    in the way."""
    wanted = list(dict.fromkeys(letter_ids))
    if not 1 <= len(wanted) <= MAX_REPLAY:
        raise NotReplayable(f"choose between 1 and {MAX_REPLAY:,} letters; {len(wanted):,} were given")
    with transaction.atomic():
        letters = DeadLetter.objects.select_for_update().filter(id__in=wanted)
        busy = [letter for letter in letters if not letter.is_replayable]
        if len(letters) < len(wanted):
            raise NotReplayable(f"{len(wanted) - len(letters)} of the letters do not exist; reload the list")
        if busy:
            raise NotReplayable(f"{len(busy)} of the letters cannot be replayed: {busy[0].state_choice.label.lower()}")
        summary = f"Replay of {len(wanted)} dead letter{'s' if len(wanted) > 1 else ''}"
        operation = start_operation(actor, REPLAY, summary, {"letters": [str(i) for i in wanted]}, len(wanted))
        letters.update(state=LetterState.REPLAYING, replay=operation, state_changed_at=timezone.now())
    return operation


def replay_message(letter: DeadLetter) -> QueueMessage:
    """The original message again, marked so that its outcome finds its way back to the letter."""
    headers = {name: base64.b64decode(value) for name, value in letter.headers.items()}
    headers |= {REPLAY_ID: str(letter.replay_id).encode(), REPLAY_LETTER: str(letter.id).encode()}
    key = letter.key if letter.key is not None else letter.raw_key and bytes(letter.raw_key)
    return QueueMessage(key or None, bytes(letter.payload), headers)


def mark_replayed(letter_id: UUID) -> None:
    """The replayed message was handled."""
    _change_state([letter_id], LetterState.REPLAYING, LetterState.REPLAYED)


def reopen_unsent(letter_ids: Iterable[UUID]) -> None:
    """A replay ended before these were sent: they wait for the next one."""
    _change_state(letter_ids, LetterState.REPLAYING, LetterState.OPEN)


def _change_state(letter_ids: Iterable[UUID], before: LetterState, after: LetterState) -> None:
    DeadLetter.objects.filter(id__in=list(letter_ids), state=before).update(
        state=after, state_changed_at=timezone.now()
    )


def _known(letter: DeadLetter) -> bool:
    return DeadLetter.objects.filter(
        letter_topic=letter.letter_topic,
        letter_partition=letter.letter_partition,
        letter_offset=letter.letter_offset,
    ).exists()


def _to_letter(record: Record, queues: dict[UUID, Queue], tenants: dict[UUID, Tenant]) -> DeadLetter | None:
    story = read_story(record.headers)
    queue = queues.get(_header_id(record, QUEUE_ID) or UUID(int=0))
    if queue is None:
        logger.warning("%s offset %d names no known queue; it stays in its topic alone", record.topic, record.offset)
        return None
    replayed = _header_id(record, REPLAY_LETTER)
    return DeadLetter(
        queue=queue,
        tenant=tenants.get(_header_id(record, TENANT_ID) or UUID(int=0)),
        letter_topic=record.topic,
        letter_partition=record.partition,
        letter_offset=record.offset,
        topic=story.topic,
        # A dead-letter topic has its queue's partitions; the provider's own number may always be 0.
        partition=record.partition,
        offset=story.offset,
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
        attempts=story.attempts,
        first_failed_at=_time(story.first_failed_at_ms),
        failed_at=_time(story.failed_at_ms),
        replay_of=DeadLetter.objects.filter(id=replayed).first() if replayed else None,
    )


def _key_fields(record: Record) -> dict[str, Any]:
    return {"key": record.key} if isinstance(record.key, UUID) else {"raw_key": record.key}


def _encoded_headers(record: Record) -> dict[str, str]:
    """Headers without our marks; values as base64, since they may be any bytes."""
    own = original_headers(record.headers)
    return {name: base64.b64encode(own[name]).decode() for name in own if name not in (REPLAY_ID, REPLAY_LETTER)}


def _header_id(record: Record, name: str) -> UUID | None:
    text = text_header(record.headers, name)
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _text(value: str, limit: int | None = None) -> str:
    """What any database can hold: PostgreSQL refuses NUL in text, and names have their length."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}")[:limit]


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
