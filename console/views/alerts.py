from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from console.access import actor_of
from console.acknowledging import acknowledge_by_form
from console.alert_filters import EVERY, AlertFilter
from console.alert_forms import AcknowledgementForm, SilenceAlertForm
from console.changes import carried_out
from console.lists import Sort, Tab, make_tabs
from console.live import render_live
from console.live_lists import LiveListPage
from queueapi.actions.silences import silence_alert
from queueapi.choices import AlertState
from queueapi.models import Alert
from queueapi.selectors.alert_story import story_of
from queueapi.selectors.alerts import alerts_for_lists, watch
from queueapi.selectors.freshness import pipeline_freshness


class AlertList(LiveListPage):
    """What is wrong now; what is over only where it is asked for."""

    template_name = "alerts/list.html"
    part_name = "alerts/rows.html"
    filter_class = AlertFilter
    default_sort = Sort("state", descending=False)
    ties = ("-fired_at", "-pk")
    columns = {
        "state": "urgency",
        "rule": "rule_name",
        "subject": "subject_name",
        "tenant": "tenant__name",
        "since": "fired_at",
        "by": "acknowledged_by",
    }

    def all_rows(self) -> QuerySet[Any]:
        return alerts_for_lists()

    def counted_rows(self) -> QuerySet[Any]:
        """The same, without what counting needs not."""
        return Alert.objects.all()

    def sort(self) -> Sort:
        """Those that are over have nothing urgent about them."""
        is_history = self.request.GET.get("state") == AlertState.RESOLVED and "sort" not in self.request.GET
        return Sort("since", descending=True) if is_history else super().sort()

    def tabs(self) -> list[Tab]:
        others = self.request.GET.copy()
        current, others["state"] = others.get("state", ""), EVERY
        rows = self.filter_class(others, queryset=self.counted_rows(), request=self.request).qs
        numbers = dict(rows.order_by().values_list("state").annotate(number=Count("pk")))
        are_open = sum(number for state, number in numbers.items() if state != AlertState.RESOLVED)
        return [Tab("", "Open", are_open, not current), *make_tabs(AlertState, numbers, current)[1:]]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        is_calm = not context["page"].paginator.count and not context["is_filtered"]
        return {**context, "is_calm": is_calm, "watch": watch(), "freshness": pipeline_freshness()}


def show_alert(request: HttpRequest, pk: UUID) -> HttpResponse:
    alert = _alert(pk)
    is_final = alert.resolved_at is not None
    return render_live(request, "alerts/page.html", "alerts/live.html", _facts(alert), is_final=is_final)


@require_POST
def acknowledge(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to the alert's page, or its form again with what was typed if refused."""
    alert = _alert(pk)
    if (refused := acknowledge_by_form(request, alert)) is None:
        return redirect("alert", pk=pk)
    return render(request, "alerts/page.html", _facts(alert, acknowledgement=refused))


@require_POST
def silence(request: HttpRequest, pk: UUID) -> HttpResponse:
    """As `acknowledge`."""
    alert, form = _alert(pk), SilenceAlertForm(request.POST)
    made = carried_out(
        request,
        form,
        lambda: silence_alert(
            actor_of(request),
            alert,
            until=timezone.now() + form.cleaned_data["lasts"],
            reason=form.cleaned_data["reason"],
        ),
        "Not silenced",
    )
    if made is None:
        return render(request, "alerts/page.html", _facts(alert, silencing=form))
    messages.success(request, "Silenced: it says so within seconds, and nobody is told of it meanwhile.")
    return redirect("alert", pk=pk)


def _alert(pk: UUID) -> Alert:
    return get_object_or_404(alerts_for_lists().select_related("rule"), pk=pk)


def _facts(
    alert: Alert, acknowledgement: AcknowledgementForm | None = None, silencing: SilenceAlertForm | None = None
) -> dict[str, Any]:
    return {
        "alert": alert,
        "story": story_of(alert),
        "freshness": pipeline_freshness(),
        "tells_somebody": alert.rule is not None and alert.rule.channels.exists(),
        "acknowledgement": acknowledgement or AcknowledgementForm(),
        "silencing": silencing or SilenceAlertForm(),
    }
