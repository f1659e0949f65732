"""A queue's page: how it is now, how it was, who consumes it, and pausing it."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.access import actor_of
from console.chart_ranges import asked_range
from console.forms import PauseForm
from console.live import render_live
from console.queue_charts import queue_charts
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.errors import ActionError
from queueapi.models import Pause, Queue
from queueapi.selectors.consumers import attempts_by_tenant, consumers_of, pauses_of, refusals_of
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.queue_operations import DELETE, operation_under_way
from queueapi.selectors.queue_partitions import partitions_of
from queueapi.selectors.queue_plans import is_main
from queueapi.selectors.queue_rows import open_letters_of


@require_safe
def show_queue(request: HttpRequest, pk: UUID) -> HttpResponse:
    queue = get_object_or_404(_queues(), pk=pk)
    facts = _figures(queue) if getattr(request, "htmx", False) else _facts(request, queue)
    return render_live(request, "queues/page.html", "queues/live.html", facts)


@require_safe
def show_consumers(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the page that tells of them."""
    queue = get_object_or_404(_queues(), pk=pk)
    return render(request, "queues/consuming.html", {"queue": queue, **_consumers(queue)})


@require_safe
def show_charts(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the page that tells how the queue was."""
    queue, now = get_object_or_404(Queue, pk=pk), timezone.now()
    asked = asked_range(request.GET.dict(), now)
    return render(
        request, "queues/charts.html", {"queue": queue, "asked": asked, "drawn": queue_charts(queue, asked, now)}
    )


@require_POST
def pause(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to the queue's page, or its form again with what was typed if refused."""
    queue = get_object_or_404(_queues(), pk=pk)
    form = PauseForm(queue, request.POST)
    if form.is_valid():
        try:
            paused = pause_queue(actor_of(request), queue, reason=form.cleaned_data["reason"], **form.target)
        except ActionError as error:
            form.add_error(None, f"Not paused: {error.message}")
        else:
            messages.success(request, f"Paused: {paused.what}. Hosts stop handing it over within seconds.")
            return redirect(f"{reverse('queue', args=[queue.pk])}#pauses")
    return render(request, "queues/page.html", _facts(request, queue, form))


@require_POST
def resume(request: HttpRequest, pk: UUID, pause: int) -> HttpResponse:
    """A pause that somebody has lifted meanwhile is what was wanted."""
    queue = get_object_or_404(Queue, pk=pk)
    lifted = Pause.objects.filter(pk=pause, queue=queue).select_related("tenant").first()
    if lifted is not None:
        resume_queue(actor_of(request), queue, tenant=lifted.tenant, partition=lifted.partition)
    messages.success(request, f"Resumed: {lifted.what if lifted else 'it was not paused any more'}.")
    return redirect(f"{reverse('queue', args=[queue.pk])}#pauses")


def _queues() -> QuerySet[Queue]:
    return Queue.objects.select_related("tenant", "operation", "successor")


def _facts(request: HttpRequest, queue: Queue, pause_form: PauseForm | None = None) -> dict[str, Any]:
    """All of the page."""
    shown = {"tab": "now", "asked": asked_range(request.GET.dict(), timezone.now())}
    return {**shown, **_figures(queue), **_consumers(queue), "pause_form": pause_form or PauseForm(queue)}


def _figures(queue: Queue) -> dict[str, Any]:
    under_way = operation_under_way(queue)
    partitions = partitions_of(queue)
    return {
        "queue": queue,
        "partitions": partitions,
        "lag": partitions.lag,
        "open_letters": open_letters_of([queue.pk]).get(queue.pk, 0),
        "pauses": list(pauses_of(queue)),
        "under_way": under_way,
        "deletes": under_way is not None and under_way.kind == DELETE,
        "is_main": is_main(queue),
        "freshness": pipeline_freshness(),
    }


def _consumers(queue: Queue) -> dict[str, Any]:
    consumers = consumers_of(queue)
    tenants, more_tenants = attempts_by_tenant(consumers)
    return {
        "consumers": consumers,
        "refusals": refusals_of(queue),
        "tenants": tenants,
        "more_tenants": more_tenants,
    }
