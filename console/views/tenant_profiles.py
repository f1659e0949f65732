from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.access import actor_of
from console.audit_changes import audited
from console.changes import readable_fields
from console.lists import ListPage, Sort
from console.meanwhile import thing_of
from console.sent_forms import FormOf
from console.tenant_filters import ProfileFilter
from console.tenant_forms import ProfileForm
from queueapi.access.table import Resource
from queueapi.actions.tenant_profiles import (
    change_profile,
    create_profile,
    delete_profile,
    plan_profile_change,
    plan_profile_creation,
    plan_profile_deletion,
)
from queueapi.errors import ActionError
from queueapi.models import TenantProfile
from queueapi.quotas import QUOTAS
from queueapi.selectors.tenants import dedicated_services, profiles_with_counts, recent_audit

_TENANTS_SHOWN = 20


class ProfileList(ListPage):
    template_name = "tenant_profiles/list.html"
    filter_class = ProfileFilter
    default_sort = Sort("name", descending=False)
    columns = {
        "name": "name",
        "tenants": "tenant_count",
        "messages": "messages_per_s",
        "bytes": "bytes_per_s",
        "queues": "max_queues",
    }

    def all_rows(self) -> QuerySet[Any]:
        return profiles_with_counts()


def show_profile(request: HttpRequest, pk: UUID) -> HttpResponse:
    profile = get_object_or_404(profiles_with_counts(), pk=pk)
    context = {
        "profile": profile,
        "quotas": [(name, getattr(profile, name)) for name in QUOTAS],
        "tenants": list(profile.tenants.order_by("name")[:_TENANTS_SHOWN]),
        "services": dedicated_services(profile),
        "audit": audited(request, recent_audit("tenant_profile", profile.pk)),
    }
    return render(request, "tenant_profiles/page.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """An empty form; a POST shows what would be, and then creates the profile."""
    sent = FormOf(
        lambda data: ProfileForm(data),
        lambda form: create_profile(actor_of(request), **form.cleaned_data),
        "Not created",
        plan=lambda form: readable_fields(plan_profile_creation(**form.cleaned_data)),
    ).sent(request)
    if sent.made is not None:
        messages.success(request, f"Created: profile {sent.made.name}.")
        return redirect("tenant_profile", pk=sent.made.pk)
    return sent.show(request, "tenant_profiles/form.html", {})


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, pk: UUID) -> HttpResponse:
    """As `create`, of one that is there. Whoever comes second is shown what others have changed, and nothing is."""
    profile = get_object_or_404(TenantProfile, pk=pk)
    sent = FormOf(
        # The form changes the row that it is given.
        lambda data: ProfileForm(data, instance=get_object_or_404(TenantProfile, pk=pk)),
        lambda form: change_profile(actor_of(request), profile, **form.cleaned_data),
        "Not changed",
        thing_of("profile", profile, "tenant_profile"),
        plan=lambda form: readable_fields(plan_profile_change(profile, **form.cleaned_data)),
    ).sent(request)
    if sent.made is not None:
        messages.success(request, "Changed. Its tenants' quotas follow within seconds.")
        return redirect("tenant_profile", pk=pk)
    return sent.show(request, "tenant_profiles/form.html", {"profile": profile})


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would be gone, or what stands in the way; a POST does it."""
    profile = get_object_or_404(TenantProfile, pk=pk)
    if request.method == "POST":
        try:
            delete_profile(actor_of(request), profile)
        except ActionError as error:
            messages.error(request, f"Not deleted: {error.message}.")
            return redirect("delete_tenant_profile", pk=pk)
        messages.success(request, f"Deleted: profile {profile.name}.")
        return redirect("tenant_profiles")
    back, plan = reverse("tenant_profile", args=[pk]), readable_fields(plan_profile_deletion(profile))
    told = {"thing": profile, "back": back, "plan": plan, "need_resource": Resource.TENANT_PROFILES}
    return render(request, "parts/deletion.html", told)
