"""Replays: started, held up, let go on, called off."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from queueapi.actions.actor import Actor
from queueapi.actions.dead_letters import checked_reason
from queueapi.actions.ledger import record
from queueapi.actions.operations import cancel_operation, pause_operation, resume_operation, start_operation
from queueapi.actions.replay_collecting import LetterCollector
from queueapi.choices import LedgerAction
from queueapi.errors import NotReplayable
from queueapi.models import Operation, Queue, Replay
from queueapi.replaying import ReplaySettings
from queueapi.selectors.letter_filter import LetterFilter, Selection, selection_json
from queueapi.selectors.replay_plans import ReplayPlan, plan_replay
from queueapi.selectors.replay_readiness import ready_letters

REPLAY: Final = "replay_letters"
# As many may be named one by one, and are collected at once; a filter chooses any number.
MAX_NAMED: Final = 10_000


def start_replay(
    actor: Actor,
    selection: Selection,
    *,
    target: Queue | None = None,
    settings: ReplaySettings | None = None,
    reason: str = "",
) -> Replay:
    """Start sending letters to the queues they came from, or to another one. Of a filter's letters those that can be
    replayed are taken; of letters that were named, all or none. NotReplayable names what stands in the way."""
    settings, reason = settings or ReplaySettings(), checked_reason(reason)
    if not isinstance(selection, LetterFilter):
        selection = _named(selection)
    with transaction.atomic():
        target = target and _locked(target)
        if not isinstance(selection, LetterFilter):
            _check(plan_replay(selection, target, settings))
        ready = ready_letters(selection, target, settings)
        replay = _record(actor, ready.count(), selection, target, settings, reason)
        collected = LetterCollector(replay, ready).collect(MAX_NAMED)
        if not collected:
            raise NotReplayable(_why_none(plan_replay(selection, target, settings)))
        if not isinstance(selection, LetterFilter) and collected < len(selection):
            raise NotReplayable("somebody else has just taken some of the letters; reload the list")
    replay.operation.total = collected
    return replay


def replay_letters(actor: Actor, letter_ids: Iterable[UUID]) -> Operation:
    """Start sending these letters to the queues they came from, as fast as can be. All or none, as `start_replay`."""
    return start_replay(actor, list(letter_ids)).operation


def pause_replay(actor: Actor, replay: Replay) -> None:
    """Send no more until it is resumed. AlreadyFinal if over."""
    pause_operation(actor, replay.operation_id)


def resume_replay(actor: Actor, replay: Replay) -> None:
    """Go on where it was paused. AlreadyFinal if over."""
    resume_operation(actor, replay.operation_id)


def cancel_replay(actor: Actor, replay: Replay) -> None:
    """Send no more, and open again what was not sent. AlreadyFinal if over."""
    cancel_operation(actor, replay.operation_id)


def _named(letter_ids: Iterable[UUID]) -> list[UUID]:
    wanted = list(dict.fromkeys(letter_ids))
    if not 1 <= len(wanted) <= MAX_NAMED:
        raise NotReplayable(f"choose between 1 and {MAX_NAMED:,} letters, or use a filter; {len(wanted):,} were given")
    return wanted


def _locked(target: Queue) -> Queue:
    """As it is now. Who deletes it finds the replay, or the replay finds that it is being deleted."""
    found = Queue.objects.select_for_update(no_key=True).filter(pk=target.pk).first()
    if found is None:
        raise NotReplayable(f"{target} has just been deleted; name another target")
    return found


def _check(plan: ReplayPlan) -> None:
    if plan.refused:
        refused = plan.refused[0]
        raise NotReplayable(f"{refused.count} of the letters {refused.reason}", letters=refused.examples)


def _why_none(plan: ReplayPlan) -> str:
    reasons = "; ".join(f"{refused.count} {refused.reason}" for refused in plan.refused)
    return f"no letter of this choice can be replayed: {reasons or 'none is open'}"


def _record(
    actor: Actor, letters: int, selection: Selection, target: Queue | None, settings: ReplaySettings, reason: str
) -> Replay:
    chosen = selection_json(selection)
    summary = f"Replay of {letters:,} dead letter{'s' if letters > 1 else ''}"
    operation = start_operation(actor, REPLAY, summary, _told(chosen, target, settings), letters)
    replay = Replay.objects.create(
        operation=operation,
        filter=chosen,
        target=target,
        rate_per_s=settings.rate_per_s,
        ramp=list(settings.ramp),
        abort_ratio=settings.abort_ratio,
        abort_min=settings.abort_min,
        max_replays=settings.max_replays,
    )
    told, named = operation.params, None if isinstance(selection, LetterFilter) else selection
    letter = named[0] if named and len(named) == 1 else None
    record(actor, LedgerAction.REPLAY, letter_id=letter, replay_id=replay.id, count=letters, reason=reason, after=told)
    return replay


def _told(chosen: dict[str, Any], target: Queue | None, settings: ReplaySettings) -> dict[str, Any]:
    """What was asked for, for the record."""
    return {
        **chosen,
        "target": None if target is None else str(target.id),
        "rate_per_s": settings.rate_per_s,
        "ramp": list(settings.ramp),
        "abort_ratio": settings.abort_ratio,
        "abort_min": settings.abort_min,
        "max_replays": settings.max_replays,
    }
