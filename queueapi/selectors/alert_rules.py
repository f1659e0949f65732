"""Alert rules with what came of them, and what they measure now."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import FloatField, Max, OuterRef, QuerySet, Subquery

from queueapi.alerting.matching import RuleBook
from queueapi.alerting.values import Observation, Rule
from queueapi.choices import AlertState
from queueapi.models import Alert, AlertBreach, AlertRule
from queueapi.selectors.alert_figures import figures_for
from queueapi.selectors.counting import number_of

MEASURES_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Measures:
    """What a rule looks at. `worst` are the highest values, those that nobody knows last.

    as_of      None: nothing is known
    subjects   of how many things there is a value
    exceeding  how many of them are above the threshold
    """

    as_of: datetime | None
    worst: list[Observation]
    subjects: int
    exceeding: int


def rules_for_lists() -> QuerySet[AlertRule]:
    """Each with how many of its alerts are open and the highest of their values, and with how many things exceed it,
    and not for long enough yet."""
    alerts = Alert.objects.exclude(state=AlertState.RESOLVED).filter(rule=OuterRef("pk"))
    worst = alerts.order_by().values("rule").annotate(worst=Max("value")).values("worst")
    return (
        AlertRule.objects.select_related("tenant", "queue")
        .prefetch_related("channels", "escalation_channels")
        .annotate(
            open_alerts=number_of(alerts, "rule"),
            worst=Subquery(worst, output_field=FloatField()),
            breach_count=number_of(AlertBreach.objects.filter(rule=OuterRef("pk")), "rule"),
        )
    )


def measures_of(rule: AlertRule, now: datetime) -> Measures:
    """Of what it holds for, or would if it were on: narrower rules take what is theirs."""
    metric = rule.metric_choice
    figures, book = figures_for([metric], now)[metric], RuleBook(_rivals(rule))
    own = [
        one
        for one in figures.observations.values()
        if any(held.id == rule.id for held in book.holding(metric, one.subject))
    ]
    worst = sorted(own, key=lambda one: (not one.is_known, -one.value, one.subject.name))
    exceeding = sum(one.is_known and one.value > rule.threshold for one in own)
    return Measures(figures.as_of, worst[:MEASURES_SHOWN], len(own), exceeding)


def _rivals(rule: AlertRule) -> Iterator[Rule]:
    """All rules of its metric, as far as it matters what each is for: as if they were on, and told nobody."""
    metric, scopes = rule.metric_choice, AlertRule.objects.filter(metric=rule.metric).order_by()
    for pk, tenant_id, queue_id, topic in scopes.values_list("id", "tenant_id", "queue_id", "request_topic"):
        yield Rule(pk, metric, 0, 0, tenant_id=tenant_id, queue_id=queue_id, request_topic=topic)
