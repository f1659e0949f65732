"""All queues: a page of them, or a file."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.filters import QueueFilter
from console.lists import Sort, Tab, make_tabs
from console.live_lists import LiveListPage
from queueapi.choices import LagStatus
from queueapi.models import Queue
from queueapi.rest.exporting import batches, csv_lines, streamed
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.lag import count_by_status
from queueapi.selectors.queue_rows import QueueRow, queue_rows, queues_measured


class QueueList(LiveListPage):
    template_name = "queues/list.html"
    part_name = "queues/rows.html"
    filter_class = QueueFilter
    tabbed_by = "status"
    default_sort = Sort("name", descending=False)
    columns = {
        "name": "name",
        "tenant": "tenant__name",
        "partitions": "partitions",
        "status": "worst_status",
        "lag": "total_lag",
        "seconds": "longest_lag_s",
        "produced": "total_produced",
        "consumed": "total_consumed",
        "letters": "letters",
    }

    def all_rows(self) -> QuerySet[Any]:
        return queues_measured(self.columns[self.sort().column])

    def present(self, rows: Iterable[Any]) -> Iterable[QueueRow]:
        return queue_rows(rows)

    def tabs(self) -> list[Tab]:
        others = self.request.GET.copy()
        current = others.pop(self.tabbed_by, [""])[-1]
        rows = self.filter_class(others, queryset=Queue.objects.all(), request=self.request).qs
        every, *each = make_tabs(LagStatus, count_by_status(rows), current)
        return [replace(every, number=rows.count()), *each]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, freshness=pipeline_freshness())


@require_safe
def export_queues(request: HttpRequest) -> HttpResponseBase:
    """All that the filters leave, by name, as CSV. To the list, which says so, where they make no sense."""
    filters = QueueFilter(request.GET, queryset=Queue.objects.select_related("tenant"), request=request)
    if not filters.is_valid():
        return redirect(f"{reverse('queues')}?{request.GET.urlencode()}")
    return streamed(
        request, csv_lines(_told(filters.qs.order_by("name", "pk"))), "text/csv; charset=utf-8", "queues.csv"
    )


def _told(queues: QuerySet[Queue]) -> Iterator[list[dict[str, Any]]]:
    return ([_line(row) for row in queue_rows(batch)] for batch in batches(queues))


def _line(row: QueueRow) -> dict[str, Any]:
    queue, lag = row.queue, row.lag
    figures = {
        name: getattr(lag, name)
        for name in ("lag_messages", "lag_seconds", "produced_per_s", "consumed_per_s", "drain_eta_s", "oldest_age_s")
    }
    return {
        "queue": queue.name,
        "id": queue.pk,
        "tenant": queue.tenant.name,
        "state": queue.state,
        "paused": "; ".join(pause.what for pause in row.pauses),
        "partitions": queue.partitions,
        "status": lag.status and lag.status.value,
        "reason": lag.reason,
        **figures,
        "open_letters": row.open_letters,
        "as_of": lag.as_of and lag.as_of.isoformat(),
    }


def chosen_queues(request: HttpRequest) -> list[UUID]:
    """Those that were ticked. What no page of ours would send is left out."""
    chosen = []
    for text in request.POST.getlist("queue"):
        try:
            chosen.append(UUID(text))
        except ValueError:
            continue
    return chosen
