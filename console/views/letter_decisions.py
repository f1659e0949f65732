"""Replay, discard, restore, release: first the plan; with `confirm`, the change."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from console.access import actor_of
from console.letter_selections import planned_selection, posted_selection
from console.plan_digests import digest, is_confirmed, is_to_be_done
from console.replay_forms import ReplayForm
from queueapi.actions.actor import Actor
from queueapi.actions.dead_letters import (
    REPLAY_IS_OVER,
    discard_letters,
    plan_discard,
    plan_release,
    plan_restore,
    release_letters,
    restore_letters,
)
from queueapi.actions.replays import start_replay
from queueapi.choices import LetterState
from queueapi.errors import ActionError
from queueapi.models import LedgerEntry, Queue
from queueapi.replaying import DEFAULT_RAMP, ReplaySettings
from queueapi.selectors.letter_filter import LetterFilter, Selection
from queueapi.selectors.letter_owners import owners_of
from queueapi.selectors.letter_plans import ANY, LetterPlan, concerned
from queueapi.selectors.replay_plans import ReplayPlan, plan_replay
from queueapi.selectors.replay_readiness import ready_letters

# Of very many those that get most letters.
_QUEUES_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Decision:
    """What may be decided on letters that are in `before` and `ready` for it."""

    verb: str
    done: str
    before: LetterState
    plan: Callable[[Selection], LetterPlan]
    act: Callable[[Actor, Selection, str], LedgerEntry]
    consequence: str
    needs_reason: bool = True
    ready: Q = ANY


DISCARD: Final = Decision(
    "Discard",
    "discarded",
    LetterState.OPEN,
    plan_discard,
    discard_letters,
    "They are not replayed any more. Until retention removes them they can be restored.",
)
RESTORE: Final = Decision(
    "Restore",
    "restored",
    LetterState.DISCARDED,
    plan_restore,
    restore_letters,
    "They are open again, and can be replayed.",
    needs_reason=False,
)
RELEASE: Final = Decision(
    "Release",
    "released",
    LetterState.REPLAYING,
    plan_release,
    release_letters,
    "They are open again, and can be replayed. Look first whether their messages still wait in their queue: whoever "
    "replays them then has them handled twice.",
    ready=REPLAY_IS_OVER,
)


@require_POST
def replay_selected(request: HttpRequest) -> HttpResponse:
    """The plan for what was chosen, with how it is to be gone about; who confirms that plan starts it."""
    selection = posted_selection(request, LetterState.OPEN)
    settings = _careful(selection)
    # How to go about it is chosen on the page that shows the plan.
    is_chosen = not request.POST.keys().isdisjoint(ReplayForm.base_fields)
    form = ReplayForm(request.POST) if is_chosen else ReplayForm.showing(settings)
    if form.is_valid():
        settings = form.cleaned_data["settings"]
    planned = "" if form.errors else digest(asdict(settings))
    is_seen = is_confirmed(request, planned)
    if is_seen and not form.errors:
        reason = form.cleaned_data["reason"] if form.is_bound else ""
        if started := _started(request, planned_selection(request, LetterState.OPEN), settings, reason):
            return started
    common = _common(request)
    plan = plan_replay(selection, None, settings)
    ready = ready_letters(selection, None, settings)
    targets = _targets(plan)
    more = plan.other_queues + max(0, len(targets) - _QUEUES_SHOWN)
    context = {
        "plan": plan,
        "targets": targets[:_QUEUES_SHOWN],
        "more": more,
        "form": form,
        "planned": planned,
        "is_planned_anew": is_to_be_done(request) and not is_seen and not form.errors,
        "owners": owners_of(selection, ready, plan.letters),
        "ready": [] if isinstance(selection, LetterFilter) else list(ready.values_list("pk", flat=True)),
    }
    return render(request, "dead_letters/plan.html", {**context, **common})


def _started(request: HttpRequest, selection: Selection, settings: ReplaySettings, reason: str) -> HttpResponse | None:
    """To where it can be followed; None where it was refused, and the page says why."""
    try:
        replay = start_replay(actor_of(request), selection, settings=settings, reason=reason)
    except ActionError as error:
        messages.error(request, f"Nothing was replayed: {error.message}. This is the plan as it is now.")
        return None
    return redirect("operation", pk=replay.operation_id)


@require_POST
def discard_selected(request: HttpRequest) -> HttpResponse:
    return _decide(request, DISCARD)


@require_POST
def restore_selected(request: HttpRequest) -> HttpResponse:
    return _decide(request, RESTORE)


@require_POST
def release_selected(request: HttpRequest) -> HttpResponse:
    return _decide(request, RELEASE)


def _decide(request: HttpRequest, decision: Decision) -> HttpResponse:
    selection = posted_selection(request, decision.before)
    reason = request.POST.get("reason", "")
    if "confirm" in request.POST:
        try:
            entry = decision.act(actor_of(request), planned_selection(request, decision.before), reason)
        except ActionError as error:
            messages.error(request, f"Nothing was {decision.done}: {error.message}.")
        else:
            letters = "letter was" if entry.count == 1 else "letters were"
            messages.success(request, f"{entry.count:,} {letters} {decision.done}.")
            return redirect(f"{reverse('dead_letters')}{_back(request)}")
    common = _common(request)
    plan = decision.plan(selection)
    context = {"plan": plan, "decision": decision, "reason": reason, **_concerned(plan, selection, decision)}
    named = [] if isinstance(selection, LetterFilter) else selection
    return render(request, "dead_letters/decision.html", {**context, "ready": named, **common})


def _concerned(plan: LetterPlan, selection: Selection, decision: Decision) -> dict[str, Any]:
    """Whose letters these are. Nobody's where nothing can be done: there may be a million."""
    shown, more = ([], 0) if plan.why_not else concerned(selection, decision.before, decision.ready)
    return {"concerned": shown, "more_concerned": more}


def _careful(selection: Selection) -> ReplaySettings:
    """What is proposed: many are begun with care; what was chosen one by one was looked at."""
    return ReplaySettings(ramp=DEFAULT_RAMP) if isinstance(selection, LetterFilter) else ReplaySettings()


def _targets(plan: ReplayPlan) -> list[tuple[Queue, int]]:
    """Where letters would go, most first, whatever the partition."""
    queues = {target.queue.pk: target.queue for target in plan.targets}
    numbers: Counter[UUID] = Counter()
    for target in plan.targets:
        numbers[target.queue.pk] += target.letters
    return [(queues[queue], number) for queue, number in numbers.most_common()]


def _common(request: HttpRequest) -> dict[str, str]:
    """Taken before the plan is made: what comes meanwhile may be in the plan, and is not in what is confirmed."""
    chosen = {name: request.POST.get(name, "") for name in ("group", "filter")}
    return {"back": _back(request), "planned_at": timezone.now().isoformat(), **chosen}


def _back(request: HttpRequest) -> str:
    """The list's own query, which was sent along."""
    back = request.POST.get("back", "")
    return back if back.startswith("?") else ""
