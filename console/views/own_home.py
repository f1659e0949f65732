"""The first page of a tenant's people: how their queues do, what waits for them, and what they use."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from console.access import seen
from console.live import render_live
from queueapi.choices import OPEN_ISOLATION_STATES, AlertState
from queueapi.models import Alert, IsolationRequest, Tenant
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.isolation import isolation_requests
from queueapi.selectors.tenant_figures import (
    open_letters_by_queue,
    queues_used_by,
    quota_uses,
    rows_for_tenant,
    today,
    usage_of,
)

QUEUES_SHOWN = 25
REQUESTS_SHOWN = 3


@require_safe
def show_home(request: HttpRequest) -> HttpResponse:
    return render_live(request, "own/home.html", "own/home_live.html", _facts(request))


def _facts(request: HttpRequest) -> dict[str, Any]:
    tenant = seen(request, Tenant.objects.select_related("profile")).get()
    queues = queues_used_by(tenant.pk).order_by("name")
    usage = usage_of(tenant.pk, 1)
    requests = list(seen(request, isolation_requests().prefetch_related(None))[:REQUESTS_SHOWN])
    rows = rows_for_tenant(tenant.pk, queues[: QUEUES_SHOWN + 1])
    return {
        "tenant": tenant,
        "rows": rows[:QUEUES_SHOWN],
        "has_more": len(rows) > QUEUES_SHOWN,
        "troubled": [row for row in rows if row.lag.is_troubled and not row.lag.is_stale],
        "open_letters": sum(open_letters_by_queue(tenant.pk).values()),
        "firing": seen(request, Alert.objects.filter(state=AlertState.FIRING)).count(),
        "today": next((one for one in usage if one.day == today()), None),
        "quotas": quota_uses(tenant, usage),
        "requests": requests,
        "open_request": _open(requests),
        "freshness": pipeline_freshness(),
    }


def _open(requests: list[IsolationRequest]) -> IsolationRequest | None:
    return next((one for one in requests if one.state in OPEN_ISOLATION_STATES), None)
