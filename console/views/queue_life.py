"""Resize, drain and delete a queue: first the plan; with `confirm`, the change. And take a drain back."""

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
from console.move_flows import MoveFlow, draw_moves
from console.plan_digests import digest, is_confirmed, is_to_be_done
from console.queue_forms import DeletionForm, DrainForm, ResizeForm
from queueapi.access.table import OPERATE, WRITE, Verb
from queueapi.actions.queue_ends import activate_queue, delete_queue, drain_queue
from queueapi.actions.rebalances import plan_rebalance
from queueapi.actions.resizing import resize_queue
from queueapi.errors import ActionError
from queueapi.models import Operation, Queue
from queueapi.selectors.queue_plans import QueuePlan, plan_deletion, plan_drain
from queueapi.selectors.resize_plans import plan_resize
from queuecore.errors import QueueError


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn that a queue's life may take. What its form asks is what plan and act want to know."""

    verb: str
    need_verb: Verb
    form: Callable[..., Form]
    plan: Callable[..., QueuePlan]
    act: Callable[..., Operation]
    consequence: str


RESIZE: Final = Turn(
    "Resize",
    WRITE,
    ResizeForm,
    plan_resize,
    resize_queue,
    "Its messages go to new partitions, with new numbers. These are consumed once every sender goes by that and all "
    "that the former ones have is done, so that each entity's messages keep their order; then the former ones go.",
)
DRAIN: Final = Turn(
    "Drain",
    OPERATE,
    DrainForm,
    plan_drain,
    drain_queue,
    "It takes no more messages, and is consumed until it is empty. It stays so until it is activated, or deleted.",
)
DELETE: Final = Turn(
    "Delete",
    WRITE,
    DeletionForm,
    plan_deletion,
    delete_queue,
    "It takes no more messages. When none is left it is removed for good, with its topics, offsets and dead letters. "
    "Until its consumers leave it can be cancelled.",
)


@require_http_methods(["GET", "HEAD", "POST"])
def resize(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _take(request, pk, RESIZE)


@require_http_methods(["GET", "HEAD", "POST"])
def drain(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _take(request, pk, DRAIN)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _take(request, pk, DELETE)


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


def _take(request: HttpRequest, pk: UUID, turn: Turn) -> HttpResponse:
    """The plan by what was chosen; who confirms that plan is shown the operation."""
    queue = get_object_or_404(Queue.objects.select_related("tenant"), pk=pk)
    form = turn.form(queue, request.POST if request.method == "POST" else request.GET)
    chosen: dict[str, Any] = form.cleaned_data if form.is_valid() else {}
    planned = digest(chosen) if form.is_valid() else ""
    is_seen = is_confirmed(request, planned)
    if is_seen and form.is_valid():
        try:
            operation = turn.act(actor_of(request), queue, **chosen)
        except ActionError as error:
            messages.error(request, f"Nothing was done: {error.message}.")
        else:
            return redirect("operation", pk=operation.pk)
    if not chosen and turn is RESIZE:
        chosen = {"partitions": queue.partitions}
    plan = turn.plan(queue, **chosen)
    flow = _placed(queue, **chosen) if turn is RESIZE and not plan.why_not else None
    context = {
        "queue": queue,
        "turn": turn,
        "form": form,
        "plan": plan,
        "flow": flow,
        "planned": planned,
        "is_planned_anew": is_to_be_done(request) and not is_seen and form.is_valid(),
    }
    return render(request, "queues/turn.html", context)


def _placed(queue: Queue, partitions: int) -> MoveFlow | None:
    """Where its new partitions would be. None where the cluster does not know the queue, or cannot be asked: whether it
    can be resized is another's to say."""
    try:
        would_be = plan_rebalance(partitions={queue: partitions}).plan
    except QueueError:
        return None
    return draw_moves(would_be.moves, would_be.placed)
