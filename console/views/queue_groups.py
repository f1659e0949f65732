"""The groups that read a queue, and setting one to another place: first the plan; with `confirm`, the change."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from console.access import actor_of
from console.lists import PAGE_SIZES, asked_page_size
from console.offset_forms import ResetForm
from queueapi import runtime
from queueapi.actions.offsets import check_idle, reset_offsets
from queueapi.errors import ActionError
from queueapi.models import Queue
from queueapi.plans import all_groups
from queueapi.selectors.groups import GroupFigures, PartitionFigures, groups_of
from queueapi.selectors.offset_plans import plan_offsets
from queuecore.errors import QueueError
from queuecore.groups.resetting import ResetPlan

# A group in one partition; None: it was in none yet.
_Row = tuple[GroupFigures, PartitionFigures | None]


@require_safe
def show_groups(request: HttpRequest, pk: UUID) -> HttpResponse:
    queue = get_object_or_404(Queue.objects.select_related("tenant"), pk=pk)
    context: dict[str, Any] = {"queue": queue, "tab": "groups"}
    try:
        groups = groups_of(queue)
    except QueueError as error:
        context["refused"] = error.message
    else:
        rows: list[_Row] = [(group, one) for group in groups for one in group.partitions or [None]]
        page = Paginator(rows, asked_page_size(request.GET)).get_page(request.GET.get("page"))
        context |= {"groups": groups, "page": page, "page_sizes": PAGE_SIZES}
    return render(request, "queues/groups.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def reset(request: HttpRequest, pk: UUID, group: str) -> HttpResponse:
    """What is chosen is planned by GET, and done by POST if it is still the plan that was shown."""
    queue = get_object_or_404(Queue.objects.select_related("tenant"), pk=pk)
    if group not in all_groups(queue):
        raise Http404
    asked = request.POST if request.method == "POST" else request.GET
    form = ResetForm(asked if "to" in asked else None)
    plan, why_not = _plan(group, form)
    if request.method == "POST" and plan is not None and not why_not:
        if request.POST.get("token") != plan.token:
            form.add_error(
                None, "It is not what was shown any more: the group has moved on. This is the plan as it is now."
            )
        elif _reset(request, plan, form):
            return redirect("queue_groups", pk=queue.pk)
    context = {"queue": queue, "tab": "groups", "group": group, "form": form, "plan": plan, "why_not": why_not}
    return render(request, "queues/offsets.html", context)


def _plan(group: str, form: ResetForm) -> tuple[ResetPlan | None, str]:
    """And why it would be refused now."""
    if not form.is_bound or not form.is_valid():
        return None, ""
    try:
        plan = plan_offsets(group, form.target)
    except (ActionError, QueueError) as error:
        form.add_error(None, f"{error.message}.")
        return None, ""
    try:
        check_idle(runtime.provider().admin(), plan)
    except QueueError as error:
        return plan, error.message
    return plan, ""


def _reset(request: HttpRequest, plan: ResetPlan, form: ResetForm) -> bool:
    try:
        reset_offsets(actor_of(request), plan)
    except QueueError as error:
        form.add_error(None, f"Nothing was changed: {error.message}.")
        return False
    moved = sum(move.changes for move in plan.moves)
    messages.success(
        request, f"Set: {plan.group} goes on from elsewhere in {moved} partition{'' if moved == 1 else 's'}."
    )
    return True
