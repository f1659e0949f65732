"""Silences: for a while nobody is told of some alerts."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from queueapi.actions.actor import Actor, audit
from queueapi.actions.alert_scopes import check_tenant
from queueapi.actions.row_checks import check_row
from queueapi.change_plans import shown
from queueapi.errors import AlreadyFinal, InvalidInput
from queueapi.models import Alert, AlertRule, Queue, Silence, Tenant

LONGEST: Final = timedelta(days=30)

_FIELDS: Final = ("rule", "tenant", "queue", "subject_key", "reason", "created_by")


def create_silence(
    actor: Actor,
    *,
    until: datetime,
    reason: str,
    rule: AlertRule | None = None,
    tenant: Tenant | None = None,
    queue: Queue | None = None,
    subject_key: str = "",
) -> Silence:
    """Alerts that match all of these are silent from the next evaluation on. InvalidInput says what to enter."""
    now = timezone.now()
    if not reason.strip():
        raise InvalidInput("reason: say why, for whoever wonders that it is so quiet")
    if not now < until <= now + LONGEST:
        raise InvalidInput(f"until: use a time within the next {LONGEST.days} days; a rule that is never wanted is off")
    matched = {"rule": rule, "tenant": tenant, "queue": queue, "subject_key": subject_key}
    silence = Silence(reason=reason.strip(), created_by=actor.name, created_at=now, until=until, **matched)
    check_row(silence)
    check_tenant(tenant)
    with transaction.atomic():
        silence.save(force_insert=True)
        audit(actor, "create", "silence", silence.id, after=_told(silence))
    return silence


def silence_alert(actor: Actor, alert: Alert, *, until: datetime, reason: str) -> Silence:
    """The alert's rule, for what it is about. AlreadyFinal where it is over."""
    if alert.resolved_at is not None or alert.rule is None:
        raise AlreadyFinal(f"alert {alert} is over; silence its rule, if it should come again")
    return create_silence(actor, until=until, reason=reason, rule=alert.rule, subject_key=alert.subject_key)


def end_silence(actor: Actor, silence: Silence) -> None:
    """What it kept quiet and is still so is told with the next evaluation."""
    with transaction.atomic():
        kept = Silence.objects.select_for_update(of=("self",)).get(pk=silence.pk)
        audit(actor, "delete", "silence", kept.id, before=_told(kept))
        kept.delete()


def _told(silence: Silence) -> dict[str, Any]:
    """Of no tenant, whatever it is about: who silences what, and why, is for those who run the system."""
    return {**shown(silence, _FIELDS), "until": silence.until.isoformat()}
