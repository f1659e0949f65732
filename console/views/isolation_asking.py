"""Asking for queues of a tenant's own: the form, what would come of it as it is filled in, and changing it later."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from console.access import actor_of, is_told_details, seen
from console.isolation_forms import IsolationForm
from console.meanwhile import thing_of
from console.sent_forms import FormOf, Sent
from console.views.isolation_requests import found_request
from queueapi.actions.isolation import change_request, request_isolation
from queueapi.actions.isolation_plans import plan_isolation
from queueapi.choices import IsolationState
from queueapi.locking import row_locked
from queueapi.models import IsolationRequest, Tenant
from queueapi.selectors.isolatable import allowance_of, isolatable_queues, open_request


@require_http_methods(["GET", "HEAD", "POST"])
def ask(request: HttpRequest, pk: UUID) -> HttpResponse:
    """An empty form; a POST asks for it, or shows the form again with what was typed if refused."""
    tenant = _tenant(request, pk)
    if (there := open_request(tenant)) is not None:
        messages.info(request, "One is requested or under way already: this is it.")
        return redirect("isolation_request", pk=there.pk)
    sent = FormOf(
        lambda data: IsolationForm(tenant, isolatable_queues(tenant), data),
        lambda form: request_isolation(actor_of(request), tenant, form.asked, form.cleaned_data["reason"]),
        "Not asked for",
        # The form tells as it is filled in what would come of it, and somebody else decides.
        plans=False,
    ).sent(request)
    if (made := sent.made) is None:
        return _show(request, tenant, sent)
    is_decided = made.state != IsolationState.REQUESTED
    messages.success(request, "It is carried out now." if is_decided else "Asked for: an administrator decides on it.")
    return redirect("isolation_request", pk=made.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, pk: UUID) -> HttpResponse:
    """As `ask`, of one that nobody has decided on. Whoever comes second is shown what others have changed."""
    found = found_request(request, pk)
    if found.state != IsolationState.REQUESTED:
        messages.error(request, f"It is {found.state_choice.label.lower()}, and not changed any more.")
        return redirect("isolation_request", pk=pk)
    sent = FormOf(
        lambda data: _form_of(found_request(request, pk), data),
        lambda form: change_request(actor_of(request), found, queues=form.asked, reason=form.cleaned_data["reason"]),
        "Not changed",
        # Whatever is done with it, its tenant is locked first.
        thing_of("request", found, "isolation_request", kept_in="queues", holding=lambda _: row_locked(found.tenant)),
        plans=False,
    ).sent(request)
    if sent.made is None:
        return _show(request, found.tenant, sent, found)
    messages.success(request, "Changed.")
    return redirect("isolation_request", pk=pk)


@require_POST
def preview(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the form that says what would be made of what is typed there."""
    tenant = _tenant(request, pk)
    form = IsolationForm(tenant, isolatable_queues(tenant), request.POST)
    is_right = form.queues_are_valid()
    plan = plan_isolation(tenant, form.asked) if is_right and form.asked else None
    context = {"tenant": tenant, "plan": plan, "is_wrong": not is_right, "shows_services": is_told_details(request)}
    return render(request, "isolation_requests/preview.html", context)


def _tenant(request: HttpRequest, pk: UUID) -> Tenant:
    return get_object_or_404(seen(request, Tenant.objects.select_related("profile")), pk=pk)


def _form_of(found: IsolationRequest, data: QueryDict | None) -> IsolationForm:
    return IsolationForm(found.tenant, isolatable_queues(found.tenant), data, asked=found.queues, reason=found.reason)


def _show(
    request: HttpRequest,
    tenant: Tenant,
    sent: Sent[IsolationForm, IsolationRequest],
    found: IsolationRequest | None = None,
) -> HttpResponse:
    context = {"tenant": tenant, "asked": found, "allowance": allowance_of(tenant)}
    return sent.show(request, "isolation_requests/form.html", context)
