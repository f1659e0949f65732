from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console.access import actor_of, is_told_details, seen
from console.cancelling import asked_to_cancel, what_comes
from console.confirming import confirmed
from console.filters import OperationFilter
from console.lists import Sort
from console.live import render_live
from console.live_lists import LiveListPage
from console.replay_progress import replay_progress
from queueapi.actions.actor import Actor
from queueapi.actions.operations import cancel_operation, pause_operation, resume_operation
from queueapi.choices import LetterState, OperationState
from queueapi.errors import ActionError
from queueapi.models import Operation
from queueapi.selectors.operation_words import error_of_operation, log_of_operation
from queueapi.selectors.operations import letter_states_of, letters_of
from queueapi.selectors.queue_operations import why_beyond_return


class OperationList(LiveListPage):
    template_name = "operations/list.html"
    part_name = "operations/rows.html"
    filter_class = OperationFilter
    states = OperationState
    default_sort = Sort("created", descending=True)
    columns = {
        "created": "created_at",
        "summary": "summary",
        "state": "state",
        "by": "created_by__username",
        "finished": "finished_at",
    }

    def all_rows(self) -> QuerySet[Any]:
        return seen(self.request, Operation.objects.select_related("created_by").defer("params", "result"))


def show_operation(request: HttpRequest, pk: UUID) -> HttpResponse:
    operation = get_object_or_404(
        seen(request, Operation.objects.select_related("created_by", "replay__target")), pk=pk
    )
    is_detailed = is_told_details(request)
    states = letter_states_of(operation)
    context = {
        "operation": operation,
        "error": error_of_operation(operation, is_detailed=is_detailed),
        "log": log_of_operation(operation, is_detailed=is_detailed),
        "letters": letters_of(operation),
        "letter_states": states,
        "why_not_cancellable": _why_not_cancellable(operation),
        "when_cancelled": what_comes(operation),
        "progress": replay_progress(operation),
    }
    # What it sent may still be waiting for a handler when the operation itself is over.
    is_final = operation.state_choice.is_final and LetterState.REPLAYING not in dict(states)
    return render_live(request, "operations/page.html", "operations/live.html", context, is_final=is_final)


@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would come of it; a POST does it."""
    operation = get_object_or_404(seen(request, Operation.objects.all()), pk=pk)

    def act() -> str:
        cancel_operation(actor_of(request), operation.pk)
        return "Cancelling: what runs stops at its next step."

    back = reverse("operation", args=[pk])
    ask = partial(asked_to_cancel, operation, _why_not_cancellable(operation))
    return confirmed(request, act, "Not cancelled", back, ask)


@require_POST
def pause(request: HttpRequest, pk: UUID) -> HttpResponse:
    done = "Pausing: what runs stops at its next step, and waits until it is resumed."
    return _do(request, pk, pause_operation, done, "Not paused")


@require_POST
def resume(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _do(request, pk, resume_operation, "It goes on where it stopped.", "Not resumed")


def _do(
    request: HttpRequest, pk: UUID, act: Callable[[Actor, UUID], Operation], done: str, refused: str
) -> HttpResponse:
    """Back to the operation's page, which says what came of it."""
    operation = get_object_or_404(seen(request, Operation.objects.all()), pk=pk)
    try:
        act(actor_of(request), operation.pk)
    except ActionError as error:
        messages.error(request, f"{refused}: {error.message}.")
    else:
        messages.success(request, done)
    return redirect("operation", pk=operation.pk)


def _why_not_cancellable(operation: Operation) -> str:
    if operation.state_choice.is_final:
        return f"It is over: {operation.state_choice.label.lower()}."
    if operation.state == OperationState.CANCELLING:
        return "It is being cancelled already."
    why = why_beyond_return(operation)
    return f"It is too late: {why}." if why else ""
