"""What was done to letters."""

from typing import Final

from queueapi.models import DeadLetter, LedgerEntry

ENTRIES_SHOWN: Final = 20


def ledger_of(letter: DeadLetter) -> list[LedgerEntry]:
    """The newest first: what was done to this letter alone, the replays that it was in, and the last decision that it
    shared with others."""
    replays = LedgerEntry.objects.filter(replay__in=letter.replay_items.order_by().values("replay"))
    found = (*letter.ledger.all()[:ENTRIES_SHOWN], *replays[:ENTRIES_SHOWN])
    entries = {entry.pk: entry for entry in found}
    if letter.decision is not None:
        entries[letter.decision.pk] = letter.decision
    return sorted(entries.values(), key=lambda entry: entry.pk, reverse=True)
