"""Who is to be told what of alerts: stored as deliveries, which a worker makes."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from queueapi.alerting.messages import MOST_IN_ONE, Notice
from queueapi.choices import NoticeKind
from queueapi.models import Alert, AlertChannel, AlertDelivery, AlertNotice, AlertRule
from queueapi.wakeups import wake_deliveries


class ToTell(NamedTuple):
    alert: Alert
    kind: NoticeKind


def tell(notices: Collection[ToTell], now: datetime) -> int:
    """How many deliveries that makes. Call it in the transaction of what it tells about."""
    if not notices:
        return 0
    by_channel: dict[UUID, list[ToTell]] = defaultdict(list)
    channels = _Channels([one.alert for one in notices])
    for one in notices:
        for channel_id in channels.for_notice(one):
            by_channel[channel_id].append(one)
    deliveries, rows = [], []
    for channel_id, told in by_channel.items():
        for start in range(0, len(told), MOST_IN_ONE):
            delivery = AlertDelivery(channel_id=channel_id, created_at=now, due_at=now)
            deliveries.append(delivery)
            rows += [_row(delivery, one) for one in told[start : start + MOST_IN_ONE]]
    AlertDelivery.objects.bulk_create(deliveries)
    AlertNotice.objects.bulk_create(rows, batch_size=500)
    if deliveries:
        wake_deliveries()
    return len(deliveries)


def notice_of(alert: Alert, kind: str) -> Notice:
    """What is told of it, as it is now."""
    over = f"{alert.resolution}: " if alert.resolution else ""
    return Notice(
        notice=kind,
        alert=str(alert.id),
        rule=alert.rule_name,
        severity=alert.severity,
        metric=alert.metric,
        subject=alert.subject_name,
        tenant=None if alert.tenant_id is None else str(alert.tenant_id),
        value=alert.value,
        unit=alert.unit,
        threshold=alert.threshold,
        reason=over + alert.reason,
        since=alert.since.isoformat(),
        path=alert.link,
    )


class _Channels:
    """Who is told of these alerts, also where it is switched off: what is new when it is switched on is sent then. That
    one is over is for those who were told of it before."""

    def __init__(self, alerts: Iterable[Alert]) -> None:
        rules = AlertRule.objects.prefetch_related("channels", "escalation_channels")
        self._first = {rule.id: _ids(rule.channels.all()) for rule in rules}
        self._escalated = {rule.id: _ids(rule.escalation_channels.all()) for rule in rules}
        self._told: dict[UUID, set[UUID]] = defaultdict(set)
        resolved = [alert.id for alert in alerts if alert.resolved_at is not None]
        for start in range(0, len(resolved), 500):
            rows = AlertNotice.objects.filter(alert__in=resolved[start : start + 500])
            for alert_id, channel_id in rows.values_list("alert_id", "channel_id"):
                self._told[alert_id].add(channel_id)

    def for_notice(self, one: ToTell) -> Collection[UUID]:
        if one.kind == NoticeKind.RESOLVED:
            return self._told[one.alert.id]
        by_rule = self._first if one.kind == NoticeKind.FIRED else self._escalated
        return by_rule.get(one.alert.rule_id, ()) if one.alert.rule_id else ()


def _ids(channels: Iterable[AlertChannel]) -> set[UUID]:
    return {channel.id for channel in channels}


def _row(delivery: AlertDelivery, one: ToTell) -> AlertNotice:
    return AlertNotice(
        delivery=delivery,
        alert=one.alert,
        channel_id=delivery.channel_id,
        kind=one.kind,
        told=notice_of(one.alert, one.kind),
    )
