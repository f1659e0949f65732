"""Alert channels with who uses them, and what they were sent."""

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from queueapi.choices import DeliveryState
from queueapi.models import AlertChannel, AlertDelivery, AlertNotice, AlertRule
from queueapi.selectors.counting import number_of


def channels_for_lists() -> QuerySet[AlertChannel]:
    """Each with how many rules tell it, how many messages wait for it, and what came of the last that did not."""
    last = AlertDelivery.objects.filter(channel=OuterRef("pk")).order_by("-created_at", "-id")
    return AlertChannel.objects.annotate(
        rule_count=Count("rules", distinct=True) + Count("escalating_rules", distinct=True),
        waiting=number_of(last.filter(state=DeliveryState.PENDING), "channel"),
        last_state=Subquery(last.values("state")[:1]),
        last_error=Subquery(last.values("error")[:1]),
        last_at=Subquery(last.values("created_at")[:1]),
    )


def deliveries_of(channel: AlertChannel) -> QuerySet[AlertDelivery]:
    """The newest first, each with of how many alerts it tells."""
    notices = AlertNotice.objects.filter(delivery=OuterRef("pk"))
    return channel.deliveries.annotate(notice_count=number_of(notices, "delivery"))


def rules_telling(channel: AlertChannel) -> QuerySet[AlertRule]:
    return AlertRule.objects.filter(Q(channels=channel) | Q(escalation_channels=channel)).distinct()
