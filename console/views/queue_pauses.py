"""Pause and resume queues that were chosen from the list: first the plan; with `confirm`, the change."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.access import actor_of
from console.pausing import PAUSE, RESUME, Change
from console.queue_forms import BulkPauseForm
from console.views.queue_list import chosen_queues
from queueapi.actions.bulk_pauses import plan_pauses
from queueapi.errors import ActionError


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
    back_to = f"{reverse('queues')}{back}"
    if "confirm" in request.POST and form.is_valid():
        try:
            number = change.act(actor_of(request), [row.queue for row in plan.rows], form.cleaned_data["reason"])
        except ActionError as error:
            form.add_error(None, f"Nothing was {change.done}: {error.message}.")
        else:
            messages.success(request, f"{change.done.capitalize()}: {number} queue{'' if number == 1 else 's'}.")
            return redirect(back_to)
    context = {"plan": plan, "change": change, "form": form, "back": back, "back_to": back_to, "back_name": "Queues"}
    return render(request, "queues/pausing.html", context)
