"""Alerts as lists show them, and how many there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Case, Count, F, IntegerField, Min, Q, QuerySet, Value, When, Window

from queueapi.choices import AlertSeverity, AlertState
from queueapi.models import Alert, AlertEvaluation, AlertRule

# What wants somebody most comes first.
_STATES: Final = (AlertState.FIRING, AlertState.ACKNOWLEDGED, AlertState.SILENCED, AlertState.RESOLVED)
_SEVERITIES: Final = (AlertSeverity.CRITICAL, AlertSeverity.WARNING, AlertSeverity.INFO)


def _rank(field: str, values: tuple[str, ...]) -> Case:
    """How many of the values come before its own."""
    whens = (When(**{field: value}, then=Value(rank)) for rank, value in enumerate(values))
    return Case(*whens, output_field=IntegerField())


@dataclass(frozen=True, slots=True)
class Firing:
    """Alerts that fire, and that nobody sees to: how many, since when, and those that want somebody most."""

    number: int = 0
    critical: int = 0
    since: datetime | None = None
    worst: tuple[Alert, ...] = ()


@dataclass(frozen=True, slots=True)
class Watch:
    """How many rules are on, and when they were last looked at; None: never."""

    rules: int
    evaluated_at: datetime | None


@dataclass(frozen=True, slots=True)
class AlertCounts:
    """`firing` counts those by severity. `evaluated_at` is when rules were last looked at; None: never."""

    states: Mapping[str, int]
    firing: Mapping[str, int]
    evaluated_at: datetime | None


def alert_counts(alerts: QuerySet[Alert]) -> AlertCounts:
    states = dict.fromkeys(AlertState.values, 0)
    firing = dict.fromkeys(AlertSeverity.values, 0)
    counted = alerts.order_by().values("state", "severity").annotate(number=Count("pk"))
    for row in counted:
        states[row["state"]] += row["number"]
        if row["state"] == AlertState.FIRING:
            firing[row["severity"]] += row["number"]
    evaluated_at = AlertEvaluation.objects.values_list("at", flat=True).first()
    return AlertCounts(states, firing, evaluated_at)


def alerts_for_lists() -> QuerySet[Alert]:
    """Each with whose it is, and with its `urgency`: the least wants somebody most."""
    urgency = _rank("state", _STATES) * len(_SEVERITIES) + _rank("severity", _SEVERITIES)
    return Alert.objects.select_related("tenant", "queue").annotate(urgency=urgency)


def firing(most: int) -> Firing:
    """With so many of them. One query: the first page is asked for every few seconds."""
    counted = Alert.objects.filter(state=AlertState.FIRING).annotate(
        number=Window(Count("pk")),
        critical=Window(Count("pk", filter=Q(severity=AlertSeverity.CRITICAL))),
        first=Window(Min("fired_at")),
    )
    worst = tuple(counted.order_by(_rank("severity", _SEVERITIES), "fired_at", "pk")[:most])
    return Firing(worst[0].number, worst[0].critical, worst[0].first, worst) if worst else Firing()


def open_alerts_of(tenant_id: UUID, most: int) -> list[Alert]:
    """Of what is this tenant's alone, the most urgent first."""
    rows = alerts_for_lists().filter(tenant=tenant_id, resolved_at=None)
    return list(rows.order_by(F("urgency"), "-fired_at")[:most])


def watch() -> Watch:
    evaluated_at = AlertEvaluation.objects.values_list("at", flat=True).first()
    return Watch(AlertRule.objects.filter(enabled=True).count(), evaluated_at)
