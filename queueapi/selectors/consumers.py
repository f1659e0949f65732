"""Who consumes what, how they are, and what stands still on somebody's word."""

from django.db.models import QuerySet
from django.utils import timezone

from queueapi.choices import TROUBLED_CONSUMER_STATES
from queueapi.models import ConsumerStanding, Pause, Queue


def consumers_of(queue: Queue) -> list[ConsumerStanding]:
    """By partition; those of hosts whose lease has expired as well, as they were last."""
    standings = ConsumerStanding.objects.filter(queue=queue).select_related("service")
    return sorted(standings, key=lambda one: (one.partitions, one.service_id))


def troubled_consumers() -> QuerySet[ConsumerStanding]:
    """Those of live hosts that do not get on, the longest first."""
    return (
        ConsumerStanding.objects.filter(
            state__in=TROUBLED_CONSUMER_STATES, service__lease_expires_at__gt=timezone.now()
        )
        .select_related("queue")
        .order_by("since")
    )


def pauses_of(queue: Queue) -> QuerySet[Pause]:
    return queue.pauses.select_related("tenant")


def all_pauses() -> QuerySet[Pause]:
    return Pause.objects.select_related("queue", "tenant")
