"""What people do to alerts, and how old ones go."""

from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from queueapi.actions.actor import Actor, audit
from queueapi.choices import LEGAL_ALERT_CHANGES, AlertState
from queueapi.errors import AlreadyFinal, NotChangeable
from queueapi.models import Alert, AlertDelivery, Silence

_AT_ONCE: Final = 1000


def acknowledge_alert(actor: Actor, alert: Alert, note: str = "") -> Alert:
    """Somebody sees to it: it does not escalate, and resolves as ever. Acknowledged already: it stays as it is, with
    the first name. AlreadyFinal where it is over."""
    with transaction.atomic():
        row = Alert.objects.select_for_update(of=("self",)).get(pk=alert.pk)
        if row.state == AlertState.ACKNOWLEDGED:
            return row
        before = row.state
        change_state(row, AlertState.ACKNOWLEDGED)
        row.acknowledged_at, row.acknowledged_by, row.note = timezone.now(), actor.name, note
        row.save(update_fields=["state", "acknowledged_at", "acknowledged_by", "note"])
        after = {"state": row.state, "note": note}
        audit(actor, "acknowledge", "alert", row.id, tenant_id=row.tenant_id, before={"state": before}, after=after)
    return row


def change_state(alert: Alert, state: AlertState) -> None:
    """Of the row in memory. AlreadyFinal, NotChangeable where that cannot follow."""
    if alert.state == AlertState.RESOLVED:
        raise AlreadyFinal(f"alert {alert} is over since {alert.resolved_at:%Y-%m-%d %H:%M} UTC")
    if state not in LEGAL_ALERT_CHANGES[alert.state_choice]:
        raise NotChangeable(f"alert {alert} is {alert.state}, and cannot become {state}")
    alert.state = state


def purge_alerts(before: datetime) -> int:
    """Remove those that were resolved before, and silences and deliveries that ended so long ago; how many alerts."""
    removed = _remove(Alert.objects.filter(resolved_at__lt=before).order_by("resolved_at"))
    _remove(Silence.objects.filter(until__lt=before).order_by("until"))
    _remove(AlertDelivery.objects.filter(finished_at__lt=before).order_by("finished_at"))
    return removed


def _remove(rows: QuerySet[Any]) -> int:
    """A part at a time: others want to write meanwhile."""
    removed = 0
    while ids := list(rows.values_list("pk", flat=True)[:_AT_ONCE]):
        rows.model.objects.filter(pk__in=ids).delete()
        removed += len(ids)
    return removed
