"""Pause and resume queues that were chosen from the list: first the plan; with `confirm`, the change."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.access import actor_of
from console.queue_forms import BulkPauseForm
from console.views.queue_list import chosen_queues
from queueapi.actions.actor import Actor
from queueapi.actions.bulk_pauses import pause_queues, plan_pauses, resume_queues
from queueapi.errors import ActionError
from queueapi.models import Queue


@dataclass(frozen=True, slots=True)
class Change:
    """What may be done to several queues, in words."""

    verb: str
    done: str
    paused: bool
    consequence: str
    act: Callable[[Actor, list[Queue], str], int]


PAUSE: Final = Change(
    "Pause",
    "paused",
    True,
    "What is being handled is finished, and messages go on being stored. The pauses outlive restarts.",
    lambda actor, queues, reason: pause_queues(actor, queues, reason=reason),
)
RESUME: Final = Change(
    "Resume",
    "resumed",
    False,
    "Messages that wait are handed over within seconds, the oldest first.",
    lambda actor, queues, _: resume_queues(actor, queues),
)


@require_POST
def pause_selected(request: HttpRequest) -> HttpResponse:
    return _change(request, PAUSE)


@require_POST
def resume_selected(request: HttpRequest) -> HttpResponse:
    return _change(request, RESUME)


def _change(request: HttpRequest, change: Change) -> HttpResponse:
    plan = plan_pauses(chosen_queues(request), paused=change.paused)
    form = BulkPauseForm(request.POST if "confirm" in request.POST else None, needs_reason=change.paused)
    back = request.POST.get("back", "")
    back = back if back.startswith("?") else ""
    if "confirm" in request.POST and form.is_valid():
        try:
            number = change.act(actor_of(request), [row.queue for row in plan.rows], form.cleaned_data["reason"])
        except ActionError as error:
            form.add_error(None, f"Nothing was {change.done}: {error.message}.")
        else:
            messages.success(request, f"{change.done.capitalize()}: {number} queue{'' if number == 1 else 's'}.")
            return redirect(f"{reverse('queues')}{back}")
    return render(request, "queues/pausing.html", {"plan": plan, "change": change, "form": form, "back": back})
