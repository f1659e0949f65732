from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from console.access import actor_of
from console.rebalance_forms import RebalancePlanForm
from console.what_ifs import shown
from queueapi.actions.rebalances import plan_rebalance, start_rebalance, why_not_appliable
from queueapi.cluster.store import DatabaseStore
from queueapi.errors import ActionError
from queuecore.cluster.view import Spread
from queuecore.cluster.what_if import WhatIf
from queuecore.errors import UnknownService

# What is sent along with a plan that is applied.
_PLANNED: Final = ("leaving", "joining", "weight", "joining_ids", "queue", "partitions")


@require_http_methods(["GET", "HEAD", "POST"])
def plan(request: HttpRequest) -> HttpResponse:
    """What would happen, as the address asks; a POST does it, and shows the page again if refused."""
    spread = DatabaseStore().spread()
    data = request.POST if request.method == "POST" else request.GET
    form = RebalancePlanForm(spread.services, data or None)
    if request.method == "POST" and (done := _apply(request, form)):
        return done
    return render(request, "rebalances/plan.html", {"form": form, "planned": _planned(data), **_seen(form, spread)})


def _apply(request: HttpRequest, form: RebalancePlanForm) -> HttpResponse | None:
    """Where it can be followed, or None where the form says what is wrong."""
    if not form.is_valid():
        return None
    try:
        operation = start_rebalance(actor_of(request), reason=form.cleaned_data["reason"], **form.asked)
    except (ActionError, UnknownService) as error:
        form.add_error("reason" if not form.cleaned_data["reason"].strip() else None, f"Not begun: {error.message}.")
        return None
    messages.success(request, "The rebalance was asked for. The coordinator begins it within a second.")
    return redirect("rebalance", pk=UUID(operation.params["rebalance"]))


def _planned(data: QueryDict) -> list[tuple[str, str]]:
    """What was asked about, to be sent again."""
    return [(name, value) for name in _PLANNED for value in data.getlist(name) if value]


def _seen(form: RebalancePlanForm, spread: Spread) -> dict[str, Any]:
    """The what-if, or nothing where what was typed cannot be planned for."""
    if form.is_bound and not _is_plannable(form):
        return {}
    asked = form.asked
    try:
        seen = plan_rebalance(spread=spread, **asked)
    except (ActionError, UnknownService) as error:
        form.add_error(None, f"This cannot be planned: {error.message}.")
        return {}
    return {
        **shown(seen),
        "why_not": _why_not(seen, asked),
        "resized": getattr(form, "cleaned_data", {}).get("queue"),
        "resize_query": _resize_query(form),
        "service_count": len(spread.services),
    }


def _resize_query(form: RebalancePlanForm) -> str:
    """With which the page that resizes the queue shows the plan for as many partitions as were asked about."""
    wanted = getattr(form, "cleaned_data", {}).get("partitions")
    return f"?partitions={wanted}" if wanted else ""


def _is_plannable(form: RebalancePlanForm) -> bool:
    """A reason that is missing keeps nobody from seeing the plan."""
    return not any(form.errors.get(name) for name in _PLANNED)


def _why_not(seen: WhatIf, asked: dict[str, Any]) -> str:
    if reason := why_not_appliable(asked["joining"], asked["partitions"]):
        return reason
    is_idle = not seen.plan.moves and not seen.placements and not asked["leaving"]
    return "nothing would move: everything is where it should be" if is_idle else ""
