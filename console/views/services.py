from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from console.access import actor_of
from console.cluster_filters import ServiceFilter
from console.lists import Sort
from console.live_lists import LiveListPage
from console.what_ifs import shown
from queueapi.actions.rebalances import plan_draining, set_service_draining
from queueapi.cluster.models import ServiceInstance
from queueapi.selectors.rebalances import coordinator_id, fair_shares
from queueapi.selectors.services import services
from queuecore.errors import UnknownService


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """`share` is how many partitions it should have; None where it counts no more."""

    service: Any
    share: float | None
    most: float
    is_coordinator: bool


class ServiceList(LiveListPage):
    template_name = "services/list.html"
    part_name = "services/live.html"
    filter_class = ServiceFilter
    default_sort = Sort("id", descending=False)
    columns = {
        "id": "service_id",
        "weight": "weight",
        "partitions": "partitions",
        "host": "host",
        "lease": "lease_expires_at",
    }

    def all_rows(self) -> QuerySet[Any]:
        return services()

    def present(self, rows: Iterable[Any]) -> Iterable[ServiceRow]:
        found = list(rows)
        shares = fair_shares() if found else {}
        most = max([*shares.values(), *(row.partitions for row in found)], default=0)
        leader = coordinator_id()
        for row in found:
            share = 0.0 if row.is_draining else shares.get(row.service_id)
            yield ServiceRow(row, None if row.gone_at else share, most, row.service_id == leader)


@require_http_methods(["GET", "HEAD", "POST"])
def drain(request: HttpRequest, pk: str) -> HttpResponse:
    """What would move; a POST does it."""
    return _set_draining(request, pk, draining=True)


@require_http_methods(["GET", "HEAD", "POST"])
def undrain(request: HttpRequest, pk: str) -> HttpResponse:
    return _set_draining(request, pk, draining=False)


def _set_draining(request: HttpRequest, pk: str, *, draining: bool) -> HttpResponse:
    if "\0" in pk:
        raise Http404
    service = get_object_or_404(ServiceInstance, pk=pk)
    try:
        if request.method == "POST":
            set_service_draining(actor_of(request), pk, draining=draining)
            messages.success(request, _done(pk, draining=draining))
            return redirect("services")
        planned = plan_draining(pk, draining=draining)
    except UnknownService:
        verb = "drained" if draining else "used again"
        messages.error(request, f"Not {verb}: {pk} has left, or was lost. Its partitions are others' already.")
        return redirect("services")
    return render(request, "services/drain.html", {"service": service, "draining": draining, **shown(planned)})


def _done(service_id: str, *, draining: bool) -> str:
    if draining:
        return f"Draining: {service_id} gives its partitions away. It can be stopped when it has none."
    return f"{service_id} gets its share of partitions again."
