"""What an alert rule measures now."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from typing import Final

from django.db.models import QuerySet

from queueapi.alerting.matching import RuleBook
from queueapi.alerting.values import Figures, Rule
from queueapi.models import AlertRule, Queue
from queueapi.models.queue import full_queue_name
from queueapi.selectors.alert_figures import Reported, Told, reported_for
from queuecore.topics import SYSTEM_TENANT

MEASURES_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Measure:
    """Of a thing by its name what is told, as `Observation` has it."""

    name: str
    value: float
    detail: str
    is_known: bool
    is_at_least: bool


@dataclass(frozen=True, slots=True)
class Measures:
    """What a rule looks at. `worst` are the highest values, those that nobody knows last.

    as_of      None: nothing is known
    subjects   of how many things there is a value
    exceeding  how many of them are above the threshold
    """

    as_of: datetime | None
    worst: list[Measure]
    subjects: int
    exceeding: int


def measures_of(rule: AlertRule, now: datetime) -> Measures:
    """Of what it holds for, or would if it were on: narrower rules take what is theirs."""
    found = reported_for(rule.metric_choice, now)
    own = _of_queues(rule, found) if isinstance(found, Reported) else _of_others(rule, found)
    worst = nsmallest(MEASURES_SHOWN, own, key=lambda one: (one[1].value is None, -(one[1].value or 0), one[0]))
    exceeding = sum(told.value is not None and told.value > rule.threshold for _, told in own)
    return Measures(found.as_of, [_measure(*one) for one in worst], len(own), exceeding)


def _of_queues(rule: AlertRule, found: Reported) -> list[tuple[str, Told]]:
    """Those that it holds for are chosen by the database: there may be very many, and all are looked at."""
    told = found.told
    names = _queues_of(rule).order_by().values_list("pk", "name", "tenant_id", "tenant__name")
    own = ((full_queue_name(name, tenant, owner), told.get(queue, found.rest)) for queue, name, tenant, owner in names)
    return [(name, one) for name, one in own if one is not None]


def _queues_of(rule: AlertRule) -> QuerySet[Queue]:
    """As `RuleBook` has it: those that no other rule of its metric is nearer to."""
    if rule.queue_id is not None:
        return Queue.objects.filter(pk=rule.queue_id)
    others = AlertRule.objects.filter(metric=rule.metric).order_by()
    wide = Queue.objects.exclude(pk__in=others.filter(queue__isnull=False).values("queue"))
    if rule.tenant_id is not None:
        # The system's queues are nobody's.
        return wide.filter(tenant=rule.tenant_id).exclude(tenant=SYSTEM_TENANT)
    taken = others.filter(queue__isnull=True, tenant__isnull=False).exclude(tenant=SYSTEM_TENANT)
    return wide.exclude(tenant__in=taken.values("tenant"))


def _of_others(rule: AlertRule, found: Figures) -> list[tuple[str, Told]]:
    book = RuleBook(_rivals(rule))
    return [
        (one.subject.name, Told(one.value if one.is_known else None, one.detail, one.as_of, one.is_at_least))
        for one in found.observations.values()
        if any(held.id == rule.id for held in book.holding(rule.metric_choice, one.subject))
    ]


def _rivals(rule: AlertRule) -> Iterator[Rule]:
    """All rules of its metric, as far as it matters what each is for: as if they were on, and told nobody."""
    metric, scopes = rule.metric_choice, AlertRule.objects.filter(metric=rule.metric).order_by()
    for pk, tenant_id, queue_id, topic in scopes.values_list("id", "tenant_id", "queue_id", "request_topic"):
        yield Rule(pk, metric, 0, 0, tenant_id=tenant_id, queue_id=queue_id, request_topic=topic)


def _measure(name: str, told: Told) -> Measure:
    return Measure(name, told.value or 0, told.detail, told.value is not None, told.is_at_least)
