"""Pausing and resuming by the form on a queue's page, whoever's page it is."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from console.access import actor_of
from console.forms import PauseForm
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.errors import ActionError
from queueapi.models import Pause, Queue


def pause_by_form(request: HttpRequest, queue: Queue) -> PauseForm | None:
    """Pause what was entered; the form, with what was typed and why not, where it was refused."""
    form = PauseForm(queue, request.POST)
    if not form.is_valid():
        return form
    try:
        paused = pause_queue(actor_of(request), queue, reason=form.cleaned_data["reason"], **form.target)
    except ActionError as error:
        form.add_error(None, f"Not paused: {error.message}")
        return form
    messages.success(request, f"Paused: {paused.what}. Within seconds nothing of it is handed over.")
    return None


def resume_by_id(request: HttpRequest, queue: Queue, pause: int) -> HttpResponse:
    """Lift that pause, but for one that an operation needs. One that somebody has lifted meanwhile is what was
    wanted."""
    found = Pause.objects.filter(pk=pause, queue=queue).select_related("tenant").first()
    if found is not None and found.operation_id is not None:
        messages.error(request, "Not resumed: it is lifted when what is under way has ended.")
        return to_pauses(queue.pk)
    if found is not None:
        resume_queue(actor_of(request), queue, tenant=found.tenant, partition=found.partition)
    messages.success(request, f"Resumed: {found.what if found else 'it was not paused any more'}.")
    return to_pauses(queue.pk)


def to_pauses(queue: UUID) -> HttpResponse:
    """Back to where its page tells of them."""
    return redirect(f"{reverse('queue', args=[queue])}#pauses")
