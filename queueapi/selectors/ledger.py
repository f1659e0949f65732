"""What was done to letters."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from queueapi.models import Account, DeadLetter, LedgerEntry

ENTRIES_SHOWN: Final = 20


def ledger_of(letter: DeadLetter, tenant_id: UUID | None = None) -> list[LedgerEntry]:
    """The newest first: what was done to this letter alone, the replays that it was in, and the last decision that it
    shared with others. For a tenant's people, of what was done to several letters at once what their own did: that of
    the system's people may name letters of others."""
    replays = LedgerEntry.objects.filter(replay__in=letter.replay_items.order_by().values("replay"))
    found = (*letter.ledger.all()[:ENTRIES_SHOWN], *replays[:ENTRIES_SHOWN])
    entries = {entry.pk: entry for entry in found}
    if letter.decision is not None:
        entries[letter.decision.pk] = letter.decision
    if tenant_id is not None:
        theirs = set(Account.objects.filter(tenant=tenant_id).values_list("user_id", flat=True))
        entries = {key: entry for key, entry in entries.items() if _is_told(entry, letter, theirs)}
    return sorted(entries.values(), key=lambda entry: entry.pk, reverse=True)


def _is_told(entry: LedgerEntry, letter: DeadLetter, theirs: Collection[int]) -> bool:
    return entry.actor_id in theirs or (entry.letter_id == letter.pk and entry.replay_id is None)
