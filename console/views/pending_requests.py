"""What services ask of each other: what they wait for, and how long answers take."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from console.chart_ranges import asked_range
from console.filters import ListFilter, search_box
from console.lists import Sort
from console.live_lists import LiveListPage
from console.request_charts import request_charts, time_bars
from console.request_limits import request_limits
from queueapi.models import RequestCurrent
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.pending_requests import request_times, request_totals


class RequestFilter(ListFilter):
    q = search_box("Search", "search", "Service or topic")

    class Meta:
        model = RequestCurrent
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(service_id__icontains=value) | Q(request_topic__icontains=value))


class PendingRequestList(LiveListPage):
    template_name = "pending_requests/list.html"
    part_name = "pending_requests/live.html"
    filter_class = RequestFilter
    default_sort = Sort("pending", descending=True)
    kept = (*LiveListPage.kept, "range", "from", "to")
    columns = {
        "service": "service_id",
        "topic": "request_topic",
        "pending": "pending",
        "oldest": "oldest_pending_ms",
        "timeouts": "timed_out",
        "p50": "lag_p50_ms",
        "p95": "lag_p95_ms",
        "p99": "lag_p99_ms",
        "orphans": "orphans",
    }

    def all_rows(self) -> QuerySet[Any]:
        return RequestCurrent.objects.defer("lag_buckets", "age_buckets")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        limits, totals = request_limits(), request_totals()
        now, times = timezone.now(), request_times(totals.as_of)
        asked = asked_range(self.request.GET.dict(), now)
        return super().get_context_data(
            **kwargs,
            limits=limits,
            totals=totals,
            bars=time_bars(times.answers, limits),
            ages=time_bars(times.ages, limits),
            untold=times.untold,
            asked=asked,
            charts=request_charts(asked, limits, now),
            freshness=pipeline_freshness(),
        )
