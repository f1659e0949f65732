"""Alert rules with what came of them."""

from django.db.models import FloatField, Max, OuterRef, QuerySet, Subquery

from queueapi.choices import AlertState
from queueapi.models import Alert, AlertBreach, AlertRule
from queueapi.selectors.counting import number_of


def rules_for_lists() -> QuerySet[AlertRule]:
    """Each with how many of its alerts are open and the highest of their values, and with how many things exceed it,
    and not for long enough yet."""
    alerts = Alert.objects.exclude(state=AlertState.RESOLVED).filter(rule=OuterRef("pk"))
    worst = alerts.order_by().values("rule").annotate(worst=Max("value")).values("worst")
    return (
        AlertRule.objects.select_related("tenant", "queue__tenant")
        .prefetch_related("channels", "escalation_channels")
        .annotate(
            open_alerts=number_of(alerts, "rule"),
            worst=Subquery(worst, output_field=FloatField()),
            breach_count=number_of(AlertBreach.objects.filter(rule=OuterRef("pk")), "rule"),
        )
    )
