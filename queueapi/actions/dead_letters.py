"""Decisions on dead letters: discard them, take that back, or wait no longer for what became of a replay.

Of a filter's letters those that can be changed are, and the others stay as they are. Of letters that were named all are
changed or none: whoever named them has seen them in the state that they were in.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.db.models.expressions import Combinable

from queueapi.actions.actor import Actor
from queueapi.actions.ledger import record
from queueapi.actions.letter_states import change_states
from queueapi.choices import FINAL_OPERATION_STATES, LedgerAction, LetterState
from queueapi.errors import InvalidInput, NotChangeable
from queueapi.models import LedgerEntry
from queueapi.selectors.letter_filter import LetterFilter, Selection, selected_letters, selection_json
from queueapi.selectors.letter_plans import ANY, LetterPlan, plan_change

# More would keep everyone else who writes waiting.
MAX_AT_ONCE: Final = 10_000
LONGEST_REASON: Final = 2_000
# What else letters that are being replayed must be to be released.
REPLAY_IS_OVER: Final = Q(replay__operation__state__in=FINAL_OPERATION_STATES)

_NOTHING: Final[Mapping[str, Combinable]] = MappingProxyType({})


def plan_discard(selection: Selection) -> LetterPlan:
    """What `discard_letters` would do now."""
    return plan_change(selection, LetterState.OPEN, LetterState.DISCARDED, MAX_AT_ONCE)


def plan_restore(selection: Selection) -> LetterPlan:
    """What `restore_letters` would do now."""
    return plan_change(selection, LetterState.DISCARDED, LetterState.OPEN, MAX_AT_ONCE)


def plan_release(selection: Selection) -> LetterPlan:
    """What `release_letters` would do now."""
    return plan_change(selection, LetterState.REPLAYING, LetterState.OPEN, MAX_AT_ONCE, REPLAY_IS_OVER)


def discard_letters(actor: Actor, selection: Selection, reason: str) -> LedgerEntry:
    """Give open letters up for good, until somebody restores them. NotChangeable names what stands in the way,
    InvalidInput what is wrong with the reason."""
    reason = checked_reason(reason)
    if not reason:
        raise InvalidInput("say why the letters are discarded: whoever misses them wants to know")
    return _change(actor, LedgerAction.DISCARD, selection, LetterState.OPEN, LetterState.DISCARDED, reason)


def restore_letters(actor: Actor, selection: Selection, reason: str = "") -> LedgerEntry:
    """Open discarded letters again. As `discard_letters`."""
    reason = checked_reason(reason)
    return _change(actor, LedgerAction.RESTORE, selection, LetterState.DISCARDED, LetterState.OPEN, reason)


def release_letters(actor: Actor, selection: Selection, reason: str) -> LedgerEntry:
    """Open letters again that were sent, and whose outcome nobody will tell: their messages were removed before anybody
    handled them. Only where their replay is over. As `discard_letters`."""
    reason = checked_reason(reason)
    if not reason:
        raise InvalidInput("say how you know that the messages will not be handled: else they are handled twice")
    states = (LetterState.REPLAYING, LetterState.OPEN)
    counted = {"replay_count": F("replay_count") + 1}
    # To the ledger it is another way of being open again: what they were before is told there.
    return _change(actor, LedgerAction.RESTORE, selection, *states, reason, ready=REPLAY_IS_OVER, also=counted)


def checked_reason(reason: str) -> str:
    """What was typed, or InvalidInput where nobody could keep it."""
    reason = reason.strip().replace("\0", "")
    if len(reason) > LONGEST_REASON:
        raise InvalidInput(f"say it in at most {LONGEST_REASON:,} characters; {len(reason):,} were given")
    return reason


def _change(
    actor: Actor,
    action: LedgerAction,
    selection: Selection,
    before: LetterState,
    after: LetterState,
    reason: str,
    *,
    ready: Q = ANY,
    also: Mapping[str, Combinable] = _NOTHING,
) -> LedgerEntry:
    with transaction.atomic():
        letter_ids = _take(selection, before, after, ready)
        entry = record(
            actor,
            action,
            letter_id=letter_ids[0] if len(letter_ids) == 1 else None,
            count=len(letter_ids),
            reason=reason,
            before={"state": before.value},
            after={"state": after.value, **selection_json(selection)},
        )
        change_states(letter_ids, before, after, decision=entry, **also)
    return entry


def _take(selection: Selection, state: LetterState, after: LetterState, ready: Q) -> Sequence[UUID]:
    """The letters to change, locked: nobody else changes them before this transaction ends."""
    chosen = selected_letters(selection).filter(ready, state=state).order_by("id").select_for_update(of=("self",))
    letter_ids = list(chosen.values_list("id", flat=True)[: MAX_AT_ONCE + 1])
    is_short = not isinstance(selection, LetterFilter) and len(letter_ids) < len(set(selection))
    if not letter_ids or len(letter_ids) > MAX_AT_ONCE or is_short:
        raise NotChangeable(plan_change(selection, state, after, MAX_AT_ONCE, ready).why_not)
    return letter_ids
