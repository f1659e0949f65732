"""Pausing and resuming by the form on a queue's page, whoever's page it is. The plan comes first."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from console.access import actor_of
from console.changes import planned
from console.confirming import show_confirmation
from console.forms import PauseForm
from console.queue_forms import BulkPauseForm
from queueapi.access.table import OPERATE, Resource
from queueapi.actions.actor import Actor
from queueapi.actions.bulk_pauses import pause_queues, plan_pauses, resume_queues
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.change_plans import ChangePlan
from queueapi.errors import ActionError
from queueapi.models import Pause, Queue


@dataclass(frozen=True, slots=True)
class Change:
    """What may be done to whole queues, in words."""

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


def pause_by_form(request: HttpRequest, queue: Queue) -> HttpResponse | PauseForm:
    """Pause what was entered; the form, with what was typed and why not, where it was refused."""
    form = PauseForm(queue, request.POST)
    if not form.is_valid():
        return form
    if "confirm" not in request.POST:
        if not form.target:
            return _show_plan(request, queue, PAUSE, form)
        plan = planned(partial(pause_queue, actor_of(request), queue, **_wanted(form)))
        if not plan.why_not:
            kept = {name: form[name].value() for name in form.fields}
            return _ask(request, queue, PAUSE, Pause(queue=queue, **form.target), plan, kept)
    try:
        paused = pause_queue(actor_of(request), queue, **_wanted(form))
    except ActionError as error:
        form.add_error(None, f"Not paused: {error.message}")
        return form
    messages.success(request, f"Paused: {paused.what}. Within seconds nothing of it is handed over.")
    return _to_pauses(queue.pk)


def resume_by_id(request: HttpRequest, queue: Queue, pause: int) -> HttpResponse:
    """Lift that pause, but for one that an operation needs. One that somebody has lifted meanwhile is what was
    wanted."""
    found = Pause.objects.filter(pk=pause, queue=queue).select_related("tenant").first()
    if found is not None and found.operation_id is not None:
        messages.error(request, "Not resumed: it is lifted when what is under way has ended.")
        return _to_pauses(queue.pk)
    if found is not None and "confirm" not in request.POST:
        if found.is_of_everything:
            return _show_plan(request, queue, RESUME, BulkPauseForm(needs_reason=False))
        act = partial(resume_queue, actor_of(request), queue, tenant=found.tenant, partition=found.partition)
        return _ask(request, queue, RESUME, found, planned(act), {})
    if found is not None:
        resume_queue(actor_of(request), queue, tenant=found.tenant, partition=found.partition)
    messages.success(request, f"Resumed: {found.what if found else 'it was not paused any more'}.")
    return _to_pauses(queue.pk)


def _to_pauses(queue: UUID) -> HttpResponse:
    """Back to where its page tells of them."""
    return redirect(_pauses_of(queue))


def _pauses_of(queue: UUID) -> str:
    return f"{reverse('queue', args=[queue])}#pauses"


def _wanted(form: PauseForm) -> dict[str, Any]:
    """As `pause_queue` wants it."""
    return {"reason": form.cleaned_data["reason"], **form.target}


def _ask(
    request: HttpRequest, queue: Queue, change: Change, pause: Pause, plan: ChangePlan, kept: dict[str, Any]
) -> HttpResponse:
    """Of one tenant or one partition."""
    told = {
        "verb": change.verb,
        "thing": f"{pause.what} of {queue.name}",
        "headline": f"{pause.what[:1].upper()}{pause.what[1:]} would be {change.done}",
        "consequence": change.consequence,
        "plan": plan,
        "back_name": queue.name,
        "leave": f"Don't {change.verb.lower()}",
        "button_kind": "danger" if change.paused else "primary",
        "need_verb": OPERATE,
        "need_resource": Resource.QUEUES,
    }
    return show_confirmation(request, _pauses_of(queue.pk), kept, told)


def _show_plan(request: HttpRequest, queue: Queue, change: Change, form: Form) -> HttpResponse:
    plan = plan_pauses([queue.pk], paused=change.paused)
    led_back = {"back_to": _pauses_of(queue.pk), "back_name": queue.name}
    return render(request, "queues/pausing.html", {"plan": plan, "change": change, "form": form, **led_back})
