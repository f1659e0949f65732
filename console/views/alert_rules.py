from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from console.access import actor_of
from console.alert_filters import RuleFilter
from console.alert_forms import RuleChangeForm, RuleForm
from console.audit_changes import audited
from console.changes import planned
from console.confirming import confirmed
from console.lists import Sort
from console.live_lists import LiveListPage
from console.meanwhile import thing_of
from console.sent_forms import FormOf
from console.templatetags.console import plural
from queueapi.access.table import WRITE, Resource
from queueapi.actions.alert_rules import change_rule, create_rule, delete_rule
from queueapi.errors import ActionError
from queueapi.models import AlertRule, Queue
from queueapi.selectors.alert_measures import measures_of
from queueapi.selectors.alert_rules import rules_for_lists
from queueapi.selectors.tenants import recent_audit

_QUEUES_OFFERED = 100


class RuleList(LiveListPage):
    template_name = "alert_rules/list.html"
    part_name = "alert_rules/rows.html"
    filter_class = RuleFilter
    default_sort = Sort("name", descending=False)
    columns = {
        "name": "name",
        "metric": "metric",
        "threshold": "threshold",
        "open": "open_alerts",
        "enabled": "enabled",
    }

    def all_rows(self) -> QuerySet[Any]:
        return rules_for_lists()


def show_rule(request: HttpRequest, pk: UUID) -> HttpResponse:
    rule = get_object_or_404(rules_for_lists(), pk=pk)
    return render(
        request, "alert_rules/page.html", {"rule": rule, "audit": audited(request, recent_audit("alert_rule", pk))}
    )


@require_safe
def show_measures(request: HttpRequest, pk: UUID) -> HttpResponse:
    """A part of the rule's page: to read the figures of all queues may take longer than a page should."""
    rule = get_object_or_404(AlertRule, pk=pk)
    return render(request, "alert_rules/measures.html", {"rule": rule, "seen": measures_of(rule, timezone.now())})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """An empty form, or filled in by the link; a POST shows what would be, and then creates it."""
    sent = FormOf(
        lambda data: RuleForm(initial=request.GET.dict()) if data is None else RuleForm(data),
        lambda form: create_rule(actor_of(request), **form.cleaned_data),
        "Not created",
    ).sent(request)
    if sent.made is not None:
        messages.success(request, f"Created: rule {sent.made.name}. It holds within seconds.")
        return redirect("alert_rule", pk=sent.made.pk)
    names = Queue.objects.order_by("name").values_list("name", flat=True).distinct()
    return sent.show(request, "alert_rules/form.html", {"queue_names": list(names[:_QUEUES_OFFERED])})


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, pk: UUID) -> HttpResponse:
    """As `create`, of one that is there. Whoever comes second is shown what others have changed, and nothing is."""
    rule = get_object_or_404(AlertRule, pk=pk)
    sent = FormOf(
        # The form changes the row that it is given.
        lambda data: RuleChangeForm(data, instance=get_object_or_404(AlertRule, pk=pk)),
        lambda form: change_rule(actor_of(request), rule, **form.cleaned_data),
        "Not changed",
        thing_of("rule", rule, "alert_rule"),
    ).sent(request)
    if sent.made is not None:
        messages.success(request, "Changed. It holds within seconds.")
        return redirect("alert_rule", pk=pk)
    return sent.show(request, "alert_rules/form.html", {"rule": rule})


@require_http_methods(["GET", "HEAD", "POST"])
def switch(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would come of making it what it is not; a POST does it: on or off, as `enabled` says."""
    rule = get_object_or_404(rules_for_lists(), pk=pk)
    enabled = request.POST.get("enabled") == "yes" if request.method == "POST" else not rule.enabled

    def act() -> str:
        change_rule(actor_of(request), rule, enabled=enabled)
        return "On: it holds within seconds." if enabled else "Off: its open alerts resolve within seconds."

    def ask() -> dict[str, Any]:
        open_alerts = plural(rule.open_alerts, "open alert resolves,open alerts resolve")  # type: ignore[attr-defined]
        nobody = f"Nobody is told of it any more, and its {open_alerts} within seconds."
        looked_at = "It is looked at within seconds, and fires where its figures have exceeded it for long enough."
        return {
            "verb": "Switch on" if enabled else "Switch off",
            "thing": rule.name,
            "headline": "It watches again" if enabled else "It watches no more",
            "consequence": looked_at if enabled else nobody,
            "kept": {"enabled": "yes" if enabled else "no"},
            "back_name": rule.name,
            "leave": "Leave it off" if enabled else "Leave it on",
            "button_kind": "primary" if enabled else "danger",
            "need_verb": WRITE,
            "need_resource": Resource.ALERT_RULES,
        }

    return confirmed(request, act, "Not switched", reverse("alert_rule", args=[pk]), ask)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would be gone, or what stands in the way; a POST does it."""
    rule = get_object_or_404(AlertRule, pk=pk)
    if request.method == "POST":
        try:
            delete_rule(actor_of(request), rule)
        except ActionError as error:
            messages.error(request, f"Not deleted: {error.message}.")
            return redirect("delete_alert_rule", pk=pk)
        messages.success(request, f"Deleted: rule {rule.name}. Its open alerts resolve within seconds.")
        return redirect("alert_rules")
    plan = planned(lambda: delete_rule(actor_of(request), rule))
    back, needed = reverse("alert_rule", args=[pk]), Resource.ALERT_RULES
    context = {"thing": rule, "back": back, "plan": plan, "need_resource": needed}
    return render(request, "parts/deletion.html", context)
