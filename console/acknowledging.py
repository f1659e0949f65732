"""Acknowledging by the form on an alert's page, whoever's page it is."""

from django.contrib import messages
from django.http import HttpRequest

from console.access import actor_of
from console.alert_forms import AcknowledgementForm
from console.changes import carried_out
from queueapi.actions.alerts import acknowledge_alert
from queueapi.models import Alert


def acknowledge_by_form(request: HttpRequest, alert: Alert) -> AcknowledgementForm | None:
    """Say that they see to it; the form, with what was typed and why not, where it was refused."""
    form = AcknowledgementForm(request.POST)
    done = carried_out(
        request,
        form,
        lambda: acknowledge_alert(actor_of(request), alert, form.cleaned_data["note"]),
        "Not acknowledged",
    )
    if done is None:
        return form
    is_mine = done.acknowledged_by == actor_of(request).name
    told = "it does not escalate, and ends as ever" if is_mine else f"{done.acknowledged_by} sees to it already"
    messages.success(request, f"Acknowledged: {told}.")
    return None
