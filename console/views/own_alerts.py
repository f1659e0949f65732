"""Alerts as a tenant's people see them: of their own queues. Who was told, and what is silenced, is the
installation's."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from console.access import seen
from console.acknowledging import acknowledge_by_form
from console.alert_forms import AcknowledgementForm
from console.live import render_live
from console.own_filters import OwnAlertFilter
from console.views.alerts import AlertList
from queueapi.models import Alert
from queueapi.selectors.alert_story import plain_story_of
from queueapi.selectors.alerts import alerts_for_lists
from queueapi.selectors.freshness import pipeline_freshness


class OwnAlertList(AlertList):
    template_name = "own/alerts.html"
    part_name = "own/alert_rows.html"
    filter_class = OwnAlertFilter
    columns = {name: column for name, column in AlertList.columns.items() if name != "tenant"}

    def all_rows(self) -> QuerySet[Any]:
        return seen(self.request, alerts_for_lists())

    def counted_rows(self) -> QuerySet[Any]:
        return seen(self.request, Alert.objects.all())


@require_safe
def show_alert(request: HttpRequest, pk: UUID) -> HttpResponse:
    alert = _found(request, pk)
    is_final = alert.resolved_at is not None
    return render_live(request, "own/alert.html", "own/alert_live.html", _facts(alert), is_final=is_final)


@require_POST
def acknowledge(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to the alert's page, or its form again with what was typed if refused."""
    alert = _found(request, pk)
    if (refused := acknowledge_by_form(request, alert)) is None:
        return redirect("alert", pk=pk)
    return render(request, "own/alert.html", _facts(alert, refused))


def _found(request: HttpRequest, pk: UUID) -> Alert:
    return get_object_or_404(seen(request, alerts_for_lists()), pk=pk)


def _facts(alert: Alert, acknowledgement: AcknowledgementForm | None = None) -> dict[str, Any]:
    return {
        "alert": alert,
        "story": plain_story_of(alert),
        "freshness": pipeline_freshness(),
        "acknowledgement": acknowledgement or AcknowledgementForm(),
    }
