"""Dead letters: into the index, out again as replays, and what came of it."""

import base64
import logging
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from queueapi.actions.actor import Actor
from queueapi.actions.letter_rows import QUEUE_ID, header_id, to_row
from queueapi.actions.operations import start_operation
from queueapi.choices import LetterState
from queueapi.errors import NotReplayable
from queueapi.models import DeadLetter, Operation, Queue, Tenant
from queueapi.selectors.dead_letters import unsent_letters
from queuecore.messages import REPLAY_ID, REPLAY_LETTER, TENANT_ID, QueueMessage, Record

logger = logging.getLogger(__name__)

REPLAY = "replay_letters"
MAX_REPLAY = 10_000


def index_letters(records: Sequence[Record]) -> int:
    """Enter letters into the index, each exactly once whatever is delivered twice. How many were new.

    A letter that came of a replay marks the one that was replayed as failed again, in the same transaction.
    One that cannot be entered is logged and stays in its topic alone; only a database that is away raises.
    """
    queues = Queue.objects.in_bulk({queue for record in records if (queue := header_id(record, QUEUE_ID))})
    tenants = Tenant.objects.in_bulk({tenant for record in records if (tenant := header_id(record, TENANT_ID))})
    with transaction.atomic():
        new = [letter for record in records if (letter := _enter(record, queues, tenants))]
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
        letters = DeadLetter.objects.select_for_update().filter(id__in=wanted).only("state")
        # As they failed, however they were chosen: an entity's messages keep their order.
        letters = letters.order_by("letter_topic", "letter_partition", "letter_offset")
        busy = [letter for letter in letters if not letter.is_replayable]
        if len(letters) < len(wanted):
            raise NotReplayable(f"{len(wanted) - len(letters)} of the letters do not exist; reload the list")
        if busy:
            raise NotReplayable(f"{len(busy)} of the letters cannot be replayed: {busy[0].state_choice.label.lower()}")
        summary = f"Replay of {len(wanted)} dead letter{'s' if len(wanted) > 1 else ''}"
        operation = start_operation(
            actor, REPLAY, summary, {"letters": [str(letter.id) for letter in letters]}, len(wanted)
        )
        letters.update(
            state=LetterState.REPLAYING, replay=operation, replay_sent_at=None, state_changed_at=timezone.now()
        )
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


def mark_sent(operation: Operation, letter_ids: Iterable[UUID]) -> None:
    """The provider acknowledged these letters' messages: this replay sends them no more, and never reopens them."""
    DeadLetter.objects.filter(id__in=list(letter_ids), replay=operation).update(replay_sent_at=timezone.now())


def reopen_unsent(operation: Operation) -> None:
    """The replay ended early: what it did not send waits for the next one."""
    unsent_letters(operation).update(state=LetterState.OPEN, state_changed_at=timezone.now())


def _change_state(letter_ids: Iterable[UUID], before: LetterState, after: LetterState) -> None:
    DeadLetter.objects.filter(id__in=list(letter_ids), state=before).update(
        state=after, state_changed_at=timezone.now()
    )


def _enter(record: Record, queues: Mapping[UUID, Queue], tenants: Mapping[UUID, Tenant]) -> DeadLetter | None:
    """The letter where it is new and could be saved."""
    queue_id = header_id(record, QUEUE_ID)
    queue = queues.get(queue_id) if queue_id else None
    if queue is None:
        logger.warning("%s offset %d names no known queue; it stays in its topic alone", record.topic, record.offset)
        return None
    try:
        with transaction.atomic():
            if _is_known(record):
                return None
            letter = to_row(record, queue, tenants)
            letter.save(force_insert=True)
    except (OperationalError, InterfaceError):
        raise  # The database is away: that is no fault of the letter's.
    except Exception as error:
        where = f"{record.topic}[{record.partition}] offset {record.offset}"
        logger.error("%s cannot be entered into the index and stays in its topic alone: %r", where, error)
        return None
    return letter


def _is_known(record: Record) -> bool:
    return DeadLetter.objects.filter(
        letter_topic=record.topic, letter_partition=record.partition, letter_offset=record.offset
    ).exists()
