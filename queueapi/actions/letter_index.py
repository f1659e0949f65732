"""Dead letters into the index, each exactly once whatever is delivered twice."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from queueapi.actions.letter_epochs import EpochGate, Source
from queueapi.actions.letter_groups import enter_groups, note_seen
from queueapi.actions.letter_rows import LetterRows, is_other_letter, to_rows
from queueapi.actions.letter_states import TallyKey, count_changes
from queueapi.actions.outcomes import mark_failed_again
from queueapi.bulk import insert_rows
from queueapi.choices import LetterState
from queueapi.errors import InvalidInput
from queueapi.models import DeadLetter, DeadLetterBody, DeadLetterGroup, QuarantinedLetter, Queue, Tenant
from queuecore.errors import QueueError
from queuecore.messages import Record
from queuecore.providers.base import QueueReader

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Draft:
    """A letter on its way into the index."""

    record: Record
    rows: LetterRows


def index_letters(records: Sequence[Record], reader: QueueReader) -> int:
    """Enter letters. How many were new. `reader` reads payloads that were too large for their letters.

    A letter that came of a replay marks the one that was replayed as failed again, in the same transaction. One that
    cannot be entered is quarantined, and the others go on; only a database or a provider that is away raises.
    """
    drafts = [draft for record in records if (draft := _draft(record, reader))]
    try:
        return _enter(drafts)
    except (OperationalError, InterfaceError):
        raise  # The database is away: that is no fault of a letter's.
    except Exception as error:
        logger.warning("%d letters cannot be entered at once, will be entered one by one: %r", len(drafts), error)
        return sum(_enter_alone(draft) for draft in drafts)


def _draft(record: Record, reader: QueueReader) -> Draft | None:
    try:
        return Draft(record, to_rows(record, reader))
    except QueueError as error:
        if error.retryable:
            raise  # The provider is away, and with it the payload.
        _quarantine(record, error)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        _quarantine(record, error)
    return None


def _enter_alone(draft: Draft) -> int:
    try:
        return _enter([draft])
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        _quarantine(draft.record, error)
        return 0


def _enter(drafts: Iterable[Draft]) -> int:
    with transaction.atomic():
        new = _without_stale(_new(drafts))
        if new:
            _insert([draft.rows for draft in new])
            _release([draft.record for draft in new])
    return len(new)


def _insert(rows: Sequence[LetterRows]) -> None:
    now = timezone.now()
    _assign_owners(rows)
    groups = enter_groups(row.letter for row in rows)
    replayed = _lock_replayed({row.replay_of_id for row in rows if row.replay_of_id}, groups.values())
    for row in rows:
        row.letter["group_id"] = groups[row.letter["queue_id"], row.letter["fingerprint"]]
        row.letter["replay_of_id"] = row.replay_of_id if row.replay_of_id in replayed else None
        row.letter["state_changed_at"] = now
    insert_rows(DeadLetter, [row.letter for row in rows])
    insert_rows(DeadLetterBody, [row.body for row in rows])
    mark_failed_again(replayed)
    keys = (TallyKey(row.letter["group_id"], row.letter["tenant_id"], LetterState.OPEN) for row in rows)
    count_changes(Counter(keys))
    note_seen(row.letter for row in rows)


def _assign_owners(rows: Sequence[LetterRows]) -> None:
    """Whose they are: as they say, else by the topic they are in. InvalidInput where that is no queue's."""
    queues = Queue.objects.in_bulk({row.queue_id for row in rows if row.queue_id})
    tenants = Tenant.objects.in_bulk({row.tenant_id for row in rows if row.tenant_id})
    by_topic = _queues_by_letter_topic() if any(row.queue_id not in queues for row in rows) else {}
    for row in rows:
        topic = row.letter["letter_topic"]
        queue = queues[row.queue_id] if row.queue_id in queues else by_topic.get(topic)
        if queue is None:
            raise InvalidInput(
                f"the letter names no queue that is known, and {topic} is no queue's; create the queue it is of"
            )
        row.letter["queue_id"] = queue.id
        named = row.tenant_id if row.tenant_id in tenants else None
        # In a queue that is one tenant's alone, a message that names another is that tenant's all the same.
        row.letter["tenant_id"] = queue.only_tenant_id or named


def _queues_by_letter_topic() -> dict[str, Queue]:
    return {queue.letter_topic: queue for queue in Queue.objects.order_by("-name")}


def _new(drafts: Iterable[Draft]) -> list[Draft]:
    """Those that are not in the index yet, each once. Another letter than the one that the index has of a place is
    quarantined."""
    wanted = {(draft.record.topic, draft.record.partition, draft.record.offset): draft for draft in drafts}
    for (topic, partition), some in _offsets(draft.record for draft in wanted.values()).items():
        between = {"letter_offset__gte": min(some), "letter_offset__lte": max(some)}
        known = DeadLetter.objects.filter(letter_topic=topic, letter_partition=partition, **between)
        for offset, known_id in known.values_list("letter_offset", "id"):
            draft = wanted.pop((topic, partition, offset), None)
            if draft is not None and is_other_letter(draft.record, known_id):
                _quarantine(
                    draft.record,
                    InvalidInput(
                        f"the index has another letter of this place, {known_id}, so the topic was deleted and made "
                        "anew; read this one from its topic"
                    ),
                )
    return list(wanted.values())


def _without_stale(drafts: list[Draft]) -> list[Draft]:
    """Those that did not come from a consumer which had lost its partition."""
    if all(draft.rows.letter["epoch"] is None for draft in drafts):
        return drafts
    gate = EpochGate(_source(draft) for draft in drafts)
    in_order = sorted(drafts, key=lambda draft: (draft.record.topic, draft.record.partition, draft.record.offset))
    admitted = [
        draft
        for draft in in_order
        if (epoch := draft.rows.letter["epoch"]) is None or gate.admits(_source(draft), epoch, draft.record)
    ]
    gate.save()
    return admitted


def _source(draft: Draft) -> Source:
    return draft.rows.letter["topic"], draft.rows.letter["partition"]


def _lock_replayed(letter_ids: set[UUID], groups: Iterable[int]) -> set[UUID]:
    """Those of these letters that there are. They and all groups that will be counted are locked, in the order that
    `letter_states` asks for: some are counted twice."""
    if not letter_ids:
        return set()
    letters = DeadLetter.objects.select_for_update().filter(id__in=letter_ids).order_by("id")
    replayed = dict(letters.values_list("id", "group_id"))
    counted = DeadLetterGroup.objects.select_for_update().filter(id__in={*groups, *replayed.values()}).order_by("id")
    list(counted.values_list("id"))
    return set(replayed)


def _release(records: Sequence[Record]) -> None:
    """What is in the index after all is quarantined no more."""
    if QuarantinedLetter.objects.exists():
        for (topic, partition), offsets in _offsets(records).items():
            held = QuarantinedLetter.objects.filter(letter_topic=topic, letter_partition=partition)
            held.filter(letter_offset__in=offsets).delete()


def _offsets(records: Iterable[Record]) -> dict[tuple[str, int], list[int]]:
    """By topic and partition."""
    offsets: dict[tuple[str, int], list[int]] = {}
    for record in records:
        offsets.setdefault((record.topic, record.partition), []).append(record.offset)
    return offsets


def _quarantine(record: Record, error: Exception) -> None:
    """Note that it is not in the index, and why. It stays in its topic."""
    where = f"{record.topic}[{record.partition}] offset {record.offset}"
    logger.error("%s cannot be entered into the index and stays in its topic alone: %r", where, error)
    QuarantinedLetter.objects.update_or_create(
        letter_topic=record.topic,
        letter_partition=record.partition,
        letter_offset=record.offset,
        defaults={"error": repr(error)[:500].replace("\0", "")},
    )
