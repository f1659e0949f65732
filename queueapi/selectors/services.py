"""Service instances, and what they have."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from queueapi.cluster.models import Partition, ServiceInstance


def services() -> QuerySet[ServiceInstance]:
    """Those that are there, and those that were lost and not seen again; each with how many `partitions` it has."""
    owned = Partition.objects.filter(owner=OuterRef("service_id")).order_by().values("owner")
    # From the index alone: names would be looked up one by one.
    count = Subquery(owned.annotate(count=Count("*")).values("count"), output_field=IntegerField())
    return ServiceInstance.objects.filter(Q(gone_at__isnull=True) | Q(is_lost=True)).annotate(
        partitions=Coalesce(count, 0)
    )


@dataclass(frozen=True, slots=True)
class Hosts:
    """Service instances that there are, or that were lost. `shown` are so many of them at most, those that are not
    alive first; `alive` are the ids of those that are."""

    shown: list[ServiceInstance]
    alive: list[str]
    number: int

    @property
    def left_out(self) -> int:
        return self.number - len(self.shown)


def hosts(most: int) -> Hosts:
    """One query."""
    known = sorted(services(), key=lambda host: (host.is_alive, host.pk))
    return Hosts(known[:most], [host.pk for host in known if host.is_alive], len(known))


def living() -> QuerySet[ServiceInstance]:
    return ServiceInstance.objects.filter(gone_at__isnull=True, lease_expires_at__gt=timezone.now())


def alive_among(service_ids: Iterable[str]) -> set[str]:
    """Those of these that are there."""
    return set(living().filter(service_id__in=set(service_ids)).values_list("service_id", flat=True))
