"""Deliveries: taken by whoever makes them, in the order in which each channel is to hear of things."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Case, F, OuterRef, QuerySet, Subquery, Value, When

from queueapi.alerting.messages import Message
from queueapi.choices import DeliveryState
from queueapi.models import AlertChannel, AlertDelivery

# Longer than any channel may take: whoever took one and is not heard of again has died.
LEASE: Final = timedelta(minutes=2)
FIRST_PAUSE: Final = timedelta(seconds=10)
LONGEST_PAUSE: Final = timedelta(minutes=10)
GIVEN_UP_AFTER: Final = timedelta(hours=24)

_LONGEST_ERROR: Final = 1000
_TOO_OLD: Final = "it waited for a day, as its channel was switched off or behind, and is no news any more"


def claim_deliveries(now: datetime, at_most: int) -> list[AlertDelivery]:
    """Those that are due: of each channel the oldest alone, so that it hears of things in their order. Each is claimed
    by one, who begins with it at once: claim no more than go side by side. What is too old to be news is given up."""
    _give_up_old(now)
    pending = AlertDelivery.objects.filter(channel=OuterRef("pk"), state=DeliveryState.PENDING)
    oldest = pending.order_by("created_at", "id").values("pk")[:1]
    channels = AlertChannel.objects.filter(enabled=True).annotate(head=Subquery(oldest)).exclude(head=None)
    due = AlertDelivery.objects.filter(pk__in=[channel.head for channel in channels], due_at__lte=now)
    first = due.order_by("due_at", "id").select_related("channel").prefetch_related("notices")[:at_most]
    return [one for one in first if _claim(one, now)]


def message_of(delivery: AlertDelivery) -> Message:
    return Message(delivery.id, delivery.created_at, tuple(notice.told for notice in delivery.notices.all()))


def record_sent(delivery: AlertDelivery, now: datetime) -> None:
    _finish(delivery, DeliveryState.SENT, "", now)


def record_failure(delivery: AlertDelivery, error: str, now: datetime, *, may_help_to_retry: bool) -> None:
    """It is tried again after a while, twice as long each time; where that does not help, or after a day, it is given
    up."""
    if not may_help_to_retry or now - delivery.created_at >= GIVEN_UP_AFTER:
        _finish(delivery, DeliveryState.FAILED, error, now)
        return
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(delivery.attempts - 1, 10))
    _mine(delivery).update(due_at=now + pause, error=error[:_LONGEST_ERROR])


def _give_up_old(now: datetime) -> None:
    """Of all channels, also of those that are switched off. What somebody has claimed is theirs."""
    pending = AlertDelivery.objects.filter(state=DeliveryState.PENDING, due_at__lte=now)
    error = Case(When(error="", then=Value(_TOO_OLD)), default=F("error"))
    old = pending.filter(created_at__lte=now - GIVEN_UP_AFTER)
    old.update(state=DeliveryState.FAILED, error=error, finished_at=now)


def _claim(delivery: AlertDelivery, now: datetime) -> bool:
    """Whether it is ours: somebody else may have been quicker."""
    until = now + LEASE
    if not _mine(delivery).update(due_at=until, attempts=F("attempts") + 1):
        return False
    delivery.due_at, delivery.attempts = until, delivery.attempts + 1
    return True


def _finish(delivery: AlertDelivery, state: DeliveryState, error: str, now: datetime) -> None:
    _mine(delivery).update(state=state, error=error[:_LONGEST_ERROR], finished_at=now)


def _mine(delivery: AlertDelivery) -> QuerySet[AlertDelivery]:
    """As it was when it was claimed: after the lease somebody else may have it."""
    return AlertDelivery.objects.filter(pk=delivery.pk, state=DeliveryState.PENDING, due_at=delivery.due_at)
