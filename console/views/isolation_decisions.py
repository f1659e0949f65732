"""What becomes of a request for queues of a tenant's own: approve, refuse, withdraw, retry, and back to the shared."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.access import actor_of, is_told_details, viewer
from console.changes import carried_out, planned
from console.confirming import confirmed
from console.isolation_forms import ApprovalForm, RefusalForm, ReturnForm
from console.views.isolation_requests import found_request, show
from queueapi.access.table import OPERATE, WRITE, Resource
from queueapi.actions import isolation as actions
from queueapi.actions.isolation_plans import plan_isolation
from queueapi.choices import IsolationState
from queueapi.models import IsolationRequest
from queueapi.selectors.isolation_words import error_of

_OWN: Final = "You have asked for it yourself: another administrator decides on it"


@require_safe
def show_decision(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the page that has the plan, and under it what can be decided."""
    return render(request, "isolation_requests/decision.html", _decision(request, found_request(request, pk)))


@require_POST
def approve(request: HttpRequest, pk: UUID) -> HttpResponse:
    found, form = found_request(request, pk), ApprovalForm(request.POST)
    done = carried_out(
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
    done = carried_out(
        request,
        form,
        lambda: actions.refuse_request(actor_of(request), found, form.cleaned_data["comment"]),
        "Not refused",
    )
    if done is None:
        return _again(request, pk, refusal=form)
    messages.success(request, "Refused: whoever asked reads why.")
    return redirect("isolation_request", pk=pk)


@require_http_methods(["GET", "HEAD", "POST"])
def withdraw(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What it means; a POST does it."""
    found = found_request(request, pk)

    def act() -> str:
        actions.withdraw_request(actor_of(request), found)
        return "Withdrawn: nothing was changed, and it can be asked for anew."

    told = {
        "verb": "Withdraw",
        "headline": f"Nobody decides on {', '.join(one['name'] for one in found.queues)} any more",
        "consequence": "Nothing has been changed, and nothing is. It can be asked for anew.",
        "leave": "Don't withdraw it",
        "need_verb": OPERATE,
    }
    return _confirmed(request, found, act, "Not withdrawn", told)


@require_http_methods(["GET", "HEAD", "POST"])
def retry(request: HttpRequest, pk: UUID) -> HttpResponse:
    """From where it goes on; a POST does it."""
    found = found_request(request, pk)

    def act() -> str:
        actions.retry_request(actor_of(request), found)
        return "It goes on from where it was."

    told = {
        "verb": "Try again",
        "headline": "It goes on from where it was",
        "consequence": "What is done already is not done twice, and messages keep their order. It can come to nothing "
        "again: see first that what it failed for is mended.",
        "warnings": [f"It had failed: {why}."]
        if (why := error_of(found, is_detailed=is_told_details(request)))
        else [],
        "leave": "Leave it as it is",
        "need_verb": WRITE,
    }
    return _confirmed(request, found, act, "Not tried again", told)


@require_http_methods(["GET", "HEAD", "POST"])
def retire(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would become of its own queues, or what stands in the way; a POST does it."""
    found = found_request(request, pk)
    form = ReturnForm(request.POST if request.method == "POST" else request.GET or None)
    discards = form.is_valid() and form.cleaned_data["discard_letters"]
    done = carried_out(
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


def _confirmed(
    request: HttpRequest, found: IsolationRequest, act: Callable[[], str], refusal: str, told: dict[str, Any]
) -> HttpResponse:
    def ask() -> dict[str, Any]:
        thing = f"own queues of {found.tenant}"
        return {"thing": thing, "back_name": thing.capitalize(), "need_resource": Resource.ISOLATION_REQUESTS, **told}

    return confirmed(request, act, refusal, reverse("isolation_request", args=[found.pk]), ask)


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
