"""A queue's page: how it is now, how it was, who consumes it, and pausing it."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.chart_ranges import asked_range
from console.forms import PauseForm
from console.live import render_live
from console.pausing import pause_by_form, resume_by_id
from console.queue_charts import queue_charts
from queueapi.models import Queue
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
    """The plan of a whole queue, then back to its page; or the page's form again, with what was typed, if refused."""
    queue = get_object_or_404(_queues(), pk=pk)
    done = pause_by_form(request, queue)
    return done if isinstance(done, HttpResponse) else render(request, "queues/page.html", _facts(request, queue, done))


@require_POST
def resume(request: HttpRequest, pk: UUID, pause: int) -> HttpResponse:
    return resume_by_id(request, get_object_or_404(Queue, pk=pk), pause)


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
