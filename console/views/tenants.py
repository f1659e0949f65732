from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from console.access import actor_of
from console.audit_changes import audited
from console.changes import readable_fields
from console.confirming import confirmed
from console.lists import ListPage, Sort
from console.meanwhile import thing_of
from console.sent_forms import FormOf
from console.tenant_filters import TenantFilter
from console.tenant_forms import SuspensionForm, TenantForm
from console.usage_charts import usage_charts
from queueapi.access.table import OPERATE, Resource
from queueapi.actions.tenant_removal import delete_tenant, plan_tenant_deletion
from queueapi.actions.tenant_states import plan_resumption, plan_suspension, resume_tenant, suspend_tenant
from queueapi.actions.tenants import change_tenant, create_tenant, plan_tenant_change, plan_tenant_creation
from queueapi.admission import admission
from queueapi.change_plans import ChangePlan
from queueapi.choices import TenantState
from queueapi.errors import ActionError
from queueapi.models import Tenant
from queueapi.selectors.alerts import open_alerts_of
from queueapi.selectors.freshness import freshness_from, freshness_values
from queueapi.selectors.tenant_figures import first_used_by, open_groups_of, quota_uses, today, usage_of
from queueapi.selectors.tenants import audit_of_tenant, tenants_with_counts

QUEUES_SHOWN: Final = 25
ALERTS_SHOWN: Final = 10
REQUESTS_SHOWN: Final = 5
USAGE_DAYS: Final = 30


class TenantList(ListPage):
    template_name = "tenants/list.html"
    filter_class = TenantFilter
    states = TenantState
    default_sort = Sort("name", descending=False)
    columns = {
        "name": "name",
        "profile": "profile__name",
        "state": "state",
        "queues": "queue_count",
        "created": "created_at",
    }

    def all_rows(self) -> QuerySet[Any]:
        return tenants_with_counts()


@require_safe
def show_tenant(request: HttpRequest, pk: UUID) -> HttpResponse:
    """All that is one tenant's, and the way to each of it."""
    tenant = get_object_or_404(tenants_with_counts().annotate(**freshness_values()), pk=pk)
    usage = usage_of(tenant.pk, USAGE_DAYS)
    context = {
        "tenant": tenant,
        "quotas": quota_uses(tenant, usage),
        "queues": first_used_by(tenant, QUEUES_SHOWN),
        "most_queues": QUEUES_SHOWN,
        "groups": open_groups_of(tenant.pk),
        "alerts": open_alerts_of(tenant.pk, ALERTS_SHOWN),
        "requests": list(tenant.isolation_requests.all()[:REQUESTS_SHOWN]),
        "charts": usage_charts(usage, USAGE_DAYS, today()),
        "shown": USAGE_DAYS,
        "freshness": freshness_from(vars(tenant)),
        "published": admission().usage(tenant.pk),
        "audit": audited(request, audit_of_tenant(tenant.pk)),
        "why_not_suspendable": "" if not tenant.is_system else plan_suspension(tenant, "-").why_not,
    }
    return render(request, "tenants/page.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """An empty form; a POST shows what would be, and then creates the tenant."""
    sent = FormOf(
        lambda data: TenantForm(data),
        lambda form: create_tenant(actor_of(request), **form.cleaned_data),
        "Not created",
        plan=lambda form: readable_fields(plan_tenant_creation(**form.cleaned_data)),
    ).sent(request)
    if sent.made is not None:
        messages.success(request, f"Created: tenant {sent.made.name}.")
        return redirect("tenant", pk=sent.made.pk)
    return sent.show(request, "tenants/form.html", {})


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, pk: UUID) -> HttpResponse:
    """As `create`, of one that is there. Whoever comes second is shown what others have changed, and nothing is."""
    tenant = get_object_or_404(Tenant, pk=pk)
    sent = FormOf(
        # The form changes the row that it is given.
        lambda data: TenantForm(data, instance=get_object_or_404(Tenant, pk=pk)),
        lambda form: change_tenant(actor_of(request), tenant, **form.cleaned_data),
        "Not changed",
        thing_of("tenant", tenant, "tenant"),
        plan=lambda form: readable_fields(plan_tenant_change(tenant, **form.cleaned_data)),
    ).sent(request)
    if sent.made is not None:
        messages.success(request, "Changed. Quotas hold within seconds.")
        return redirect("tenant", pk=pk)
    return sent.show(request, "tenants/form.html", {"tenant": tenant})


@require_http_methods(["GET", "HEAD", "POST"])
def suspend(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What it means, and why it is done; a POST does it."""
    tenant = get_object_or_404(Tenant, pk=pk)
    form = SuspensionForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            suspend_tenant(actor_of(request), tenant, form.cleaned_data["reason"])
        except ActionError as error:
            form.add_error(None, f"Not suspended: {error.message}.")
        else:
            messages.success(request, f"Suspended: what is published for {tenant.name} is refused within seconds.")
            return redirect("tenant", pk=pk)
    return render(request, "tenants/suspend.html", {"form": form, "tenant": tenant})


@require_http_methods(["GET", "HEAD", "POST"])
def resume(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What it means; a POST does it. One that somebody has resumed meanwhile is what was wanted."""
    tenant = get_object_or_404(Tenant, pk=pk)
    plan = plan_resumption(tenant)

    def act() -> str:
        resume_tenant(actor_of(request), tenant)
        told = f"{tenant.name} publishes again within seconds" if plan.changes else "it was not suspended any more"
        return f"Resumed: {told}."

    def ask() -> dict[str, Any]:
        return {
            "verb": "Resume",
            "thing": tenant.name,
            "headline": "It publishes again" if plan.changes else "It is not suspended",
            "consequence": "Within seconds every process takes what is published for it. Nothing of what was refused "
            "meanwhile comes again by itself: its publishers send that once more.",
            "plan": readable_fields(plan),
            "back_name": tenant.name,
            "leave": "Don't resume",
            "need_verb": OPERATE,
            "need_resource": Resource.TENANTS,
        }

    return confirmed(request, act, "Not resumed", reverse("tenant", args=[pk]), ask)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would be gone, or what stands in the way; a POST does it."""
    tenant = get_object_or_404(Tenant, pk=pk)
    plan: ChangePlan = plan_tenant_deletion(tenant)
    if request.method == "POST":
        try:
            delete_tenant(actor_of(request), tenant)
        except ActionError as error:
            messages.error(request, f"Not deleted: {error.message}.")
            return redirect("delete_tenant", pk=pk)
        messages.success(request, f"Deleted: tenant {tenant.name}.")
        return redirect("tenants")
    told = {
        "thing": tenant,
        "back": reverse("tenant", args=[pk]),
        "plan": readable_fields(plan),
        "need_resource": Resource.TENANTS,
    }
    return render(request, "parts/deletion.html", told)
