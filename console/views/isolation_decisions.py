"""What becomes of a request for queues of a tenant's own: approve, refuse, withdraw, retry, and back to the shared."""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.access import actor_of, is_told_details, viewer
from console.changes import carried_out, planned
from console.isolation_forms import ApprovalForm, RefusalForm, ReturnForm
from console.views.isolation_requests import found_request, show
from queueapi.access.table import WRITE, Resource
from queueapi.actions import isolation as actions
from queueapi.actions.isolation_plans import plan_isolation
from queueapi.choices import IsolationState
from queueapi.errors import ActionError
from queueapi.models import IsolationRequest

_OWN: Final = "You have asked for it yourself: another administrator decides on it"


@require_safe
def show_decision(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the page that has the plan, and under it what can be decided."""
    return render(request, "isolation_requests/decision.html", _decision(request, found_request(request, pk)))


@require_POST
def approve(request: HttpRequest, pk: UUID) -> HttpResponse:
    found, form = found_request(request, pk), ApprovalForm(request.POST)
    done, _ = carried_out(
        request,
        form,
        lambda: actions.approve_request(
            actor_of(request), found, form.cleaned_data["comment"], version=form.cleaned_data["version"]
        ),
        "Not approved",
    )
    if done is None:
        return _again(request, pk, approval=form)
    messages.success(request, "Approved: it is carried out now, and this page follows it.")
    return redirect("isolation_request", pk=pk)


@require_POST
def refuse(request: HttpRequest, pk: UUID) -> HttpResponse:
    found, form = found_request(request, pk), RefusalForm(request.POST)
    done, _ = carried_out(
        request,
        form,
        lambda: actions.refuse_request(actor_of(request), found, form.cleaned_data["comment"]),
        "Not refused",
    )
    if done is None:
        return _again(request, pk, refusal=form)
    messages.success(request, "Refused: whoever asked reads why.")
    return redirect("isolation_request", pk=pk)


@require_POST
def withdraw(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = found_request(request, pk)
    try:
        actions.withdraw_request(actor_of(request), found)
    except ActionError as error:
        messages.error(request, f"Not withdrawn: {error.message}.")
    else:
        messages.success(request, "Withdrawn: nothing was changed, and it can be asked for anew.")
    return redirect("isolation_request", pk=pk)


@require_POST
def retry(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = found_request(request, pk)
    try:
        actions.retry_request(actor_of(request), found)
    except ActionError as error:
        messages.error(request, f"Not tried again: {error.message}.")
    else:
        messages.success(request, "It goes on from where it was.")
    return redirect("isolation_request", pk=pk)


@require_http_methods(["GET", "HEAD", "POST"])
def retire(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would become of its own queues, or what stands in the way; a POST does it."""
    found = found_request(request, pk)
    form = ReturnForm(request.POST if request.method == "POST" else request.GET or None)
    discards = form.is_valid() and form.cleaned_data["discard_letters"]
    done, _ = carried_out(
        request,
        form,
        lambda: actions.return_to_shared(actor_of(request), found, discard_letters=discards),
        "Not returned",
    )
    if done is not None:
        messages.success(request, "It returns to the shared queues, and this page follows it.")
        return redirect("isolation_request", pk=pk)
    plan = planned(lambda: actions.return_to_shared(actor_of(request), found, discard_letters=discards))
    context = {
        "asked": found,
        "form": form,
        "plan": plan,
        "discards": discards,
        "back": reverse("isolation_request", args=[pk]),
        "need_verb": WRITE,
        "need_resource": Resource.ISOLATION_REQUESTS,
    }
    return render(request, "isolation_requests/retire.html", context)


def _again(request: HttpRequest, pk: UUID, **forms: Any) -> HttpResponse:
    """The page as it is now, with what was typed."""
    found = found_request(request, pk)
    return show(request, found, **{**_decision(request, found), **forms})


def _decision(request: HttpRequest, found: IsolationRequest) -> dict[str, Any]:
    is_open = found.state == IsolationState.REQUESTED
    return {
        "asked": found,
        "plan": plan_isolation(found.tenant, found.queues) if is_open else None,
        "shows_services": is_told_details(request),
        "why_not_own": _OWN if found.requested_by_id == viewer(request).user_id else "",
        "approval": ApprovalForm(initial={"version": found.version}),
        "refusal": RefusalForm(),
    }
