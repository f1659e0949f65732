"""The ledger of letters: who did what to them, and why."""

from typing import Any
from uuid import UUID

from queueapi.actions.actor import Actor, audit
from queueapi.choices import LedgerAction
from queueapi.models import LedgerEntry


def record(
    actor: Actor,
    action: LedgerAction,
    *,
    letter_id: UUID | None = None,
    group_id: int | None = None,
    replay_id: UUID | None = None,
    tenant_id: UUID | None = None,
    count: int = 1,
    reason: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> LedgerEntry:
    """Write one entry, and the audit's that belongs to it. Call it in the transaction of the change it tells about."""
    entry = LedgerEntry.objects.create(
        actor=actor.user,
        actor_name=actor.name,
        action=action,
        letter_id=letter_id,
        group_id=group_id,
        replay_id=replay_id,
        count=count,
        reason=reason,
        before=before,
        after=after,
    )
    told = {**(after or {}), "letters": count, "reason": reason}
    if group_id is not None:
        audit(actor, action, "dead_letter_group", group_id, before=before, after=told)
    elif replay_id is not None:
        audit(actor, action, "replay", replay_id, before=before, after=told)
    elif letter_id is not None:
        audit(actor, action, "dead_letter", letter_id, tenant_id=tenant_id, before=before, after=told)
    else:
        audit(actor, action, "ledger_entry", entry.pk, before=before, after=told)
    return entry
