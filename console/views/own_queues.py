"""Queues as a tenant's people see them: their own and the shared ones they use, without whose messages else are there
and which services consume them."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.access import actor_of, seen, viewer
from console.chart_ranges import asked_range
from console.forms import PauseForm
from console.lists import Sort
from console.live import render_live
from console.live_lists import LiveListPage
from console.own_filters import OwnQueueFilter
from console.queue_charts import queue_charts
from queueapi.access.tenancy import is_shared
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.errors import ActionError
from queueapi.models import Pause, Queue
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.queue_partitions import partitions_of
from queueapi.selectors.queue_rows import QueueRow
from queueapi.selectors.tenant_figures import (
    open_letters_by_queue,
    pauses_seen_by,
    queues_used_by,
    rows_for_tenant,
)


class OwnQueueList(LiveListPage):
    template_name = "own/queues.html"
    part_name = "own/queue_rows.html"
    filter_class = OwnQueueFilter
    default_sort = Sort("name", descending=False)
    columns = {"name": "name", "partitions": "partitions", "whose": "tenant__name"}

    def all_rows(self) -> QuerySet[Any]:
        return queues_used_by(_tenant(self.request))

    def present(self, rows: Iterable[Any]) -> Iterable[QueueRow]:
        return rows_for_tenant(_tenant(self.request), rows)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, freshness=pipeline_freshness())


@require_safe
def show_queue(request: HttpRequest, pk: UUID) -> HttpResponse:
    return render_live(request, "own/queue.html", "own/queue_live.html", _facts(request, _found(request, pk)))


@require_safe
def show_charts(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the page that tells how the queue was."""
    queue, now = _found(request, pk), timezone.now()
    asked = asked_range(request.GET.dict(), now)
    drawn = queue_charts(queue, asked, now, marks_rebalances=False)
    return render(request, "queues/charts.html", {"queue": queue, "asked": asked, "drawn": drawn})


@require_POST
def pause(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to the queue's page, or its form again with what was typed if refused."""
    queue = _own(request, pk)
    form = PauseForm(queue, request.POST)
    if form.is_valid():
        try:
            paused = pause_queue(actor_of(request), queue, reason=form.cleaned_data["reason"], **form.target)
        except ActionError as error:
            form.add_error(None, f"Not paused: {error.message}")
        else:
            messages.success(request, f"Paused: {paused.what}. Within seconds nothing of it is handed over.")
            return redirect(f"{reverse('queue', args=[queue.pk])}#pauses")
    return render(request, "own/queue.html", _facts(request, queue, form))


@require_POST
def resume(request: HttpRequest, pk: UUID, pause: int) -> HttpResponse:
    """A pause that somebody has lifted meanwhile is what was wanted."""
    queue = _own(request, pk)
    lifted = Pause.objects.filter(pk=pause, queue=queue).select_related("tenant").first()
    if lifted is not None:
        resume_queue(actor_of(request), queue, tenant=lifted.tenant, partition=lifted.partition)
    messages.success(request, f"Resumed: {lifted.what if lifted else 'it was not paused any more'}.")
    return redirect(f"{reverse('queue', args=[queue.pk])}#pauses")


def _tenant(request: HttpRequest) -> UUID:
    tenant = viewer(request).tenant_id
    if tenant is None:
        raise TypeError("this page is for a tenant's people")
    return tenant


def _found(request: HttpRequest, pk: UUID) -> Queue:
    return get_object_or_404(seen(request, Queue.objects.select_related("tenant")), pk=pk)


def _own(request: HttpRequest, pk: UUID) -> Queue:
    """Http404 for a shared one, too: nothing there is theirs to change."""
    return get_object_or_404(seen(request, Queue.objects.select_related("tenant")), pk=pk, tenant=_tenant(request))


def _facts(request: HttpRequest, queue: Queue, pause_form: PauseForm | None = None) -> dict[str, Any]:
    tenant, partitions = _tenant(request), partitions_of(queue)
    shared = is_shared(viewer(request), queue)
    return {
        "queue": queue,
        "is_shared": shared,
        "partitions": partitions,
        "lag": partitions.lag,
        "open_letters": open_letters_by_queue(tenant, [queue.pk]).get(queue.pk, 0),
        "pauses": list(pauses_seen_by(tenant).filter(queue=queue)),
        "freshness": pipeline_freshness(),
        "pause_form": None if shared else pause_form or PauseForm(queue),
    }
