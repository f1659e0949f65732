"""Queues as a tenant's people see them: their own and the shared ones they use, without whose messages else are there
and which services consume them."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.access import seen, viewer
from console.chart_ranges import asked_range
from console.forms import PauseForm
from console.lists import Sort
from console.live import render_live
from console.live_lists import LiveListPage
from console.own_filters import OwnQueueFilter
from console.pausing import pause_by_form, resume_by_id
from console.queue_charts import queue_charts
from queueapi.access.tenancy import is_shared
from queueapi.models import Queue
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
    """The plan of a whole queue, then back to its page; or the page's form again, with what was typed, if refused."""
    queue = _own(request, pk)
    done = pause_by_form(request, queue)
    return done if isinstance(done, HttpResponse) else render(request, "own/queue.html", _facts(request, queue, done))


@require_POST
def resume(request: HttpRequest, pk: UUID, pause: int) -> HttpResponse:
    return resume_by_id(request, _own(request, pk), pause)


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
