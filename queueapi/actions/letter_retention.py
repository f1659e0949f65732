"""Old letters go; what people did to them stays in the ledger."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from queueapi.actions.actor import SYSTEM
from queueapi.actions.ledger import record
from queueapi.actions.letter_states import TallyKey, count_changes
from queueapi.choices import LedgerAction, LetterState
from queueapi.models import (
    DeadLetter,
    DeadLetterBody,
    DeadLetterEdit,
    DeadLetterGroup,
    QuarantinedLetter,
    Queue,
    ReplayItem,
)

# Each chunk is a transaction of its own: nobody waits for long.
CHUNK: Final = 2_000


def purge_letters(before: datetime, chunk: int = CHUNK) -> int:
    """Remove letters that failed before then, and groups that have none left. How many letters were removed. One that
    is being replayed, or waits for its outcome, stays until its replay has been over since then."""
    removed = 0
    while number := _purge_chunk(before, chunk):
        removed += number
    _remove_empty_groups()
    QuarantinedLetter.objects.filter(at__lt=before).delete()
    return removed


def remove_letters_of(queue: Queue, chunk: int = CHUNK) -> int:
    """Of a queue that goes for good, whatever became of them. How many it were, up to a chunk."""
    told = {"queue": str(queue.pk), "name": queue.name}
    number = _remove_chunk(Q(queue=queue), told, chunk)
    if not number:
        DeadLetterGroup.objects.filter(queue=queue).delete()
    return number


def _purge_chunk(before: datetime, chunk: int) -> int:
    is_over = ~Q(state=LetterState.REPLAYING) | Q(replay__operation__finished_at__lt=before)
    return _remove_chunk(is_over & Q(failed_at__lt=before), {"failed_before": before.isoformat()}, chunk)


def _remove_chunk(which: Q, told: dict[str, str], chunk: int) -> int:
    with transaction.atomic():
        chosen = DeadLetter.objects.filter(which).order_by("failed_at").values("id")[:chunk]
        # Locked by rising id, as everywhere.
        letters = DeadLetter.objects.select_for_update(of=("self",))
        letters = letters.filter(which, id__in=list(chosen.values_list("id", flat=True))).order_by("id")
        rows = list(letters.values_list("id", "group_id", "tenant_id", "state"))
        if rows:
            _remove([letter for letter, *_ in rows])
            changes = Counter(TallyKey(group, tenant, LetterState(state)) for _letter, group, tenant, state in rows)
            count_changes({key: -number for key, number in changes.items()})
            record(SYSTEM, LedgerAction.PURGE, count=len(rows), after=told)
    return len(rows)


def _remove_empty_groups() -> None:
    """Those that are about to get a letter are locked by whoever enters it, and stay."""
    with transaction.atomic():
        empty = DeadLetterGroup.objects.select_for_update(skip_locked=True).filter(letters=0)
        DeadLetterGroup.objects.filter(id__in=list(empty.values_list("id", flat=True))).delete()


def _remove(letter_ids: Sequence[UUID]) -> None:
    """What refers to letters goes first."""
    DeadLetter.objects.filter(replay_of__in=letter_ids).update(replay_of=None)
    for model in (ReplayItem, DeadLetterEdit, DeadLetterBody):
        model.objects.filter(letter__in=letter_ids).order_by().delete()
    DeadLetter.objects.filter(id__in=letter_ids).delete()
