"""Drain and delete a queue: first the plan; with `confirm`, the change. And take a drain back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from console.access import actor_of
from console.queue_forms import DeletionForm, DrainForm
from queueapi.actions.queue_ends import activate_queue, delete_queue, drain_queue
from queueapi.errors import ActionError
from queueapi.models import Operation, Queue
from queueapi.selectors.queue_plans import QueuePlan, plan_deletion, plan_drain


@dataclass(frozen=True, slots=True)
class Ending:
    """One way for a queue to end. What its form asks is what plan and act want to know."""

    verb: str
    form: Callable[..., Form]
    plan: Callable[..., QueuePlan]
    act: Callable[..., Operation]
    consequence: str


DRAIN: Final = Ending(
    "Drain",
    DrainForm,
    plan_drain,
    drain_queue,
    "It takes no more messages, and is consumed until it is empty. It stays so until it is activated, or deleted.",
)
DELETE: Final = Ending(
    "Delete",
    DeletionForm,
    plan_deletion,
    delete_queue,
    "It takes no more messages. When none is left it is removed for good, with its topics, offsets and dead letters. "
    "Until its consumers leave it can be cancelled.",
)


@require_http_methods(["GET", "HEAD", "POST"])
def drain(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _end(request, pk, DRAIN)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _end(request, pk, DELETE)


@require_POST
def activate(request: HttpRequest, pk: UUID) -> HttpResponse:
    queue = get_object_or_404(Queue, pk=pk)
    try:
        activate_queue(actor_of(request), queue)
    except ActionError as error:
        messages.error(request, f"Not activated: {error.message}.")
    else:
        messages.success(request, "Active: it takes messages again.")
    return redirect("queue", pk=queue.pk)


def _end(request: HttpRequest, pk: UUID, ending: Ending) -> HttpResponse:
    """The plan by what was chosen; who confirms is shown the operation."""
    queue = get_object_or_404(Queue.objects.select_related("tenant"), pk=pk)
    form = ending.form(queue, request.POST if request.method == "POST" else request.GET)
    chosen: dict[str, Any] = form.cleaned_data if form.is_valid() else {}
    if "confirm" in request.POST and form.is_valid():
        try:
            operation = ending.act(actor_of(request), queue, **chosen)
        except ActionError as error:
            messages.error(request, f"Nothing was done: {error.message}.")
        else:
            return redirect("operation", pk=operation.pk)
    context = {"queue": queue, "ending": ending, "form": form, "plan": ending.plan(queue, **chosen)}
    return render(request, "queues/ending.html", context)
