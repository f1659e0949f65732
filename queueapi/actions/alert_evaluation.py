"""Rules, evaluated: what came of it is stored, with what is to be told, in one transaction."""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction

from queueapi.actions.alert_notices import ToTell, tell
from queueapi.actions.alerts import change_state
from queueapi.alerting.evaluation import evaluate
from queueapi.alerting.metrics import SubjectKind, measure, told
from queueapi.alerting.values import Changed, Changes, Figures, Fired, Standing, Watched
from queueapi.choices import AlertMetric, AlertState, NoticeKind
from queueapi.models import Alert, AlertBreach, AlertEvaluation, AlertRule, Silence
from queueapi.selectors.alert_figures import figures_for
from queueapi.selectors.freshness import STALE_AFTER

_AT_ONCE: Final = 500
_LONGEST_WAIT: Final = timedelta(minutes=5)
_CHANGING: Final = (
    *("state", "value", "threshold", "detail", "reason", "clear_since", "told_at", "escalated_at", "resolved_at"),
    "resolution",
)


def evaluate_rules(now: datetime) -> Changes:
    """What has changed. Two at a time wait for each other, and of what the later has seen the earlier changes nothing
    back."""
    began = time.monotonic()
    metrics = set(AlertRule.objects.order_by().values_list("metric", flat=True).distinct())
    # Before the transaction: reading takes a while, and keeps nobody from writing.
    figures = figures_for([AlertMetric(metric) for metric in metrics], now)
    with transaction.atomic():
        AlertEvaluation.objects.get_or_create(id=1)
        turn = AlertEvaluation.objects.select_for_update().get(id=1)
        # Far ahead is a clock that was set wrong, which is to keep nobody from evaluating.
        if turn.at is not None and now <= turn.at < now + _LONGEST_WAIT:
            return Changes()
        changes = _evaluated(figures, now)
        turn.at, turn.took_s = now, time.monotonic() - began
        turn.save()
    return changes


def _evaluated(figures: dict[AlertMetric, Figures], now: datetime) -> Changes:
    rules = {rule.id: rule for rule in AlertRule.objects.prefetch_related("channels", "escalation_channels")}
    alerts = {alert.id: alert for alert in _open_alerts()}
    standing = Standing(
        rules={rule.id: rule.plain for rule in rules.values()},
        figures=figures,
        open_alerts=tuple(alert.plain for alert in alerts.values()),
        breaches={Watched(one.rule_id, one.subject_key): one.since for one in AlertBreach.objects.all()},
        silences=tuple(silence.plain for silence in Silence.objects.filter(until__gt=now)),
        stale_after=STALE_AFTER,
    )
    changes = evaluate(standing, now)
    _store_breaches(changes, now)
    fired = [_new_alert(one, rules[one.rule.id], now) for one in changes.fired]
    Alert.objects.bulk_create(fired, batch_size=_AT_ONCE)
    changed = [_change(alerts[one.alert.id], one, rules, now) for one in changes.changed]
    Alert.objects.bulk_update(changed, _CHANGING, batch_size=_AT_ONCE)
    tell([*_new_notices(fired), *_notices(changes.changed, alerts)], now)
    return changes


def _open_alerts() -> Iterable[Alert]:
    """Locked: nobody acknowledges one meanwhile."""
    return Alert.objects.select_for_update(of=("self",)).exclude(state=AlertState.RESOLVED).order_by("id")


def _store_breaches(changes: Changes, now: datetime) -> None:
    begun = [AlertBreach(rule_id=one.rule_id, subject_key=one.subject_key, since=now) for one in changes.breaches_begun]
    AlertBreach.objects.bulk_create(begun, batch_size=_AT_ONCE)
    by_rule: dict[UUID, list[str]] = {}
    for rule_id, key in changes.breaches_ended:
        by_rule.setdefault(rule_id, []).append(key)
    for rule_id, keys in by_rule.items():
        for start in range(0, len(keys), _AT_ONCE):
            AlertBreach.objects.filter(rule_id=rule_id, subject_key__in=keys[start : start + _AT_ONCE]).delete()


def _new_alert(one: Fired, rule: AlertRule, now: datetime) -> Alert:
    subject, observation = one.observation.subject, one.observation
    alert = Alert(
        rule=rule,
        rule_name=rule.name,
        metric=rule.metric,
        severity=rule.severity,
        state=AlertState.SILENCED if one.is_silenced else AlertState.FIRING,
        subject_key=subject.key,
        subject_name=subject.name,
        tenant_id=subject.tenant_id,
        queue_id=subject.id if subject.kind == SubjectKind.QUEUE else None,
        value=observation.value,
        threshold=rule.threshold,
        detail=observation.detail,
        since=one.since,
        fired_at=now,
        told_at=now if one.rule.tells and not one.is_silenced else None,
    )
    alert.reason = _reason(alert)
    return alert


def _change(alert: Alert, one: Changed, rules: Mapping[UUID, AlertRule], now: datetime) -> Alert:
    if one.state != alert.state:
        change_state(alert, one.state)
    alert.value, alert.detail, alert.clear_since = one.value, one.detail, one.clear_since
    rule = None if alert.rule_id is None else rules.get(alert.rule_id)
    # Somebody may have changed it since.
    alert.threshold = alert.threshold if rule is None else rule.threshold
    alert.reason = _reason(alert)
    if one.notice == NoticeKind.FIRED:
        alert.told_at = now
    elif one.notice == NoticeKind.ESCALATED:
        alert.escalated_at = now
    if one.state == AlertState.RESOLVED:
        alert.resolved_at, alert.resolution = now, one.reason
    return alert


def _reason(alert: Alert) -> str:
    metric = AlertMetric(alert.metric)
    said = told(metric, alert.value, alert.subject_name, alert.detail)
    limit = f"more than {measure(alert.threshold, metric)}" if alert.threshold else "any"
    if alert.value > alert.threshold:
        return f"{said}; {limit} is too much"
    ending = "" if alert.state == AlertState.RESOLVED else ", and it ends once that lasts"
    return f"{said} by now; {limit} was too much{ending}"


def _new_notices(fired: Iterable[Alert]) -> Iterable[ToTell]:
    return (ToTell(alert, NoticeKind.FIRED) for alert in fired if alert.told_at is not None)


def _notices(changed: Iterable[Changed], alerts: dict[UUID, Alert]) -> Iterable[ToTell]:
    return (ToTell(alerts[one.alert.id], one.notice) for one in changed if one.notice is not None)
