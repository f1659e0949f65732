"""Alerts for tests, as an evaluation would have made them, and what belongs to them."""

from datetime import timedelta
from itertools import count
from typing import Any

from django.utils import timezone

from queueapi.actions.actor import SYSTEM
from queueapi.actions.alert_channels import create_channel
from queueapi.actions.alert_rules import create_rule
from queueapi.actions.silences import create_silence
from queueapi.models import Alert, AlertChannel, AlertRule, Queue, Silence
from queuecore.topics import SYSTEM_TENANT

_numbers = count(1)


def make_channel(**fields: Any) -> AlertChannel:
    told = {"name": f"channel {next(_numbers)}", "kind": "email", "options": {"recipients": ["oncall@example.org"]}}
    return create_channel(SYSTEM, **{**told, **fields})


def make_rule(queue: Queue | None = None, **fields: Any) -> AlertRule:
    """One of its own, beside those that come with the system."""
    told = {"name": f"rule {next(_numbers)}", "metric": "lag_messages", "threshold": 100, "resolve_at": 80}
    return create_rule(SYSTEM, queue=queue, **{**told, **fields})


def make_silence(queue: Queue | None, **fields: Any) -> Silence:
    until = timezone.now() + timedelta(hours=1)
    return create_silence(SYSTEM, **{"queue": queue, "until": until, "reason": "an upgrade", **fields})


def make_alert(queue: Queue, rule: AlertRule | None = None, **fields: Any) -> Alert:
    rule, now = rule or make_rule(queue), timezone.now()
    told = {
        "rule": rule,
        "rule_name": rule.name,
        "metric": rule.metric,
        "severity": rule.severity,
        "subject_key": f"queue:{queue.id}",
        "subject_name": queue.full_name,
        "tenant_id": None if queue.tenant_id == SYSTEM_TENANT else queue.tenant_id,
        "queue": queue,
        "value": 150,
        "threshold": rule.threshold,
        "reason": f"150 messages wait in queue {queue.full_name}; more than 100 messages is too much",
        "since": now,
        "fired_at": now,
        "told_at": now,
    }
    return Alert.objects.create(**{**told, **fields})
