"""The pipeline's page: whether the figures of all others can be trusted, why not, and making them anew."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from console.access import actor_of
from console.live import render_live
from console.pipeline_forms import BackfillForm
from queueapi.actions.pipeline import start_backfill
from queueapi.errors import ActionError
from queueapi.selectors.backfill_plans import plan_backfill
from queueapi.selectors.pipeline_standing import newest_backfills, pipeline_state


@require_safe
def show_pipeline(request: HttpRequest) -> HttpResponse:
    state = pipeline_state()
    context = {
        "state": state,
        "freshness": state.freshness,
        "backfills": newest_backfills(),
        "longest": max((run.took.total_seconds() for run in state.runs), default=0.0),
    }
    return render_live(request, "pipeline/page.html", "pipeline/live.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def backfill(request: HttpRequest) -> HttpResponse:
    """Which days; the plan for them, as the address asks; a POST starts it, and says why if refused."""
    data = request.POST if request.method == "POST" else request.GET
    form = BackfillForm(data or None)
    plan = _plan(form) if form.is_valid() else None
    if request.method == "POST" and plan is not None:
        try:
            operation = start_backfill(actor_of(request), form.cleaned_data["first"], form.cleaned_data["last"])
        except ActionError as error:
            form.add_error(None, f"Not started: {error.message}.")
        else:
            return redirect("operation", pk=operation.pk)
    return render(request, "pipeline/backfill.html", {"form": form, "plan": plan, "today": timezone.now().date()})


def _plan(form: BackfillForm) -> Any:
    try:
        return plan_backfill(form.cleaned_data["first"], form.cleaned_data["last"])
    except ActionError as error:
        form.add_error(None, f"{error.message[:1].upper()}{error.message[1:]}.")
        return None
