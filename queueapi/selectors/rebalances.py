"""Rebalances, the partitions they move, and the operations that follow them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from statistics import median_low
from typing import Final
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from queueapi.choices import RebalanceState
from queueapi.cluster.models import ClusterState, Partition, Rebalance, ServiceInstance
from queueapi.models import Operation, Queue
from queuecore.cluster.eligibility import Eligibility
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.topics import SYSTEM_TENANT, ServiceType

# The kind of operation that follows a rebalance somebody asked for.
REBALANCE: Final = "rebalance"
_RECENT: Final = 20
_MARKED: Final = 100

# Whose it is is not whose it should be.
UNSETTLED: Final = (
    (Q(owner__isnull=False) & Q(target__isnull=False) & ~Q(owner=F("target")))
    | Q(owner__isnull=True, target__isnull=False)
    | Q(owner__isnull=False, target__isnull=True)
)


def partitions() -> QuerySet[Partition]:
    """Those there are. One that is removed is its owner's alone, until that one has released it."""
    return Partition.objects.filter(is_removed=False)


def rebalances() -> QuerySet[Rebalance]:
    """For lists: without what only a rebalance's own page shows."""
    return Rebalance.objects.defer("listed", "balance")


def coordinator_id() -> str:
    """The service instance that says who should have what; empty where there is none."""
    leads = ClusterState.objects.filter(coordinator_until__gt=timezone.now())
    return leads.values_list("coordinator", flat=True).first() or ""


def operation_of(rebalance_id: UUID) -> Operation | None:
    """None where nobody asked for the rebalance."""
    return operations_of([rebalance_id]).get(rebalance_id)


def operations_of(rebalance_ids: Iterable[UUID]) -> dict[UUID, Operation]:
    """By the rebalance that each follows. Rows of two databases: there is nothing to join."""
    ids = [str(each) for each in rebalance_ids]
    found = Operation.objects.filter(kind=REBALANCE, params__rebalance__in=ids) if ids else []
    return {UUID(operation.params["rebalance"]): operation for operation in found}


def rebalances_of(queue: Queue, begin: datetime, end: datetime) -> list[Rebalance]:
    """Those that moved any of its partitions meanwhile, oldest first, or may have: of a large one not all moves are
    listed. Of very many, the newest."""
    names = set(queue.topic_names())
    rows = Rebalance.objects.filter(created_at__gte=begin, created_at__lt=end).defer("balance")
    found = [row for row in rows.order_by("-created_at")[:_MARKED] if row.may_have_moved(names)]
    return found[::-1]


def recent_pause_ms() -> int | None:
    """For how long a partition that moved was consumed by nobody: the middle of recent rebalances. None: none moved."""
    done = Rebalance.objects.filter(state=RebalanceState.DONE, pause_ms__isnull=False)
    recent = done.order_by("-created_at").values_list("pause_ms", flat=True)[:_RECENT]
    pauses = [pause_ms for pause_ms in recent if pause_ms is not None]
    return median_low(pauses) if pauses else None


def fair_shares() -> dict[str, float]:
    """How many partitions each service should have by its weight; one that is draining none. Partitions are counted by
    what they ask of a service: few groups, however many there are."""
    rows = ServiceInstance.objects.filter(gone_at__isnull=True, is_draining=False)
    usable = [row.info for row in rows]
    eligibility, shares = Eligibility(usable), dict.fromkeys((one.service_id for one in usable), 0.0)
    for asked, count in _counted(usable):
        services = eligibility.services(eligibility.want(asked))
        total = sum(service.weight for service in services)
        for service in services:
            shares[service.service_id] += count * service.weight / total
    return shares


def _counted(services: Iterable[ServiceInfo]) -> Iterator[tuple[ClusterPartition, int]]:
    """One partition of each kind, and how many there are. Whose it is matters where a service is dedicated to them."""
    taken = {dedication for service in services for dedication in service.dedicated_to}
    tenants = [tenant for one in taken if (tenant := _as_id(one)) is not None]
    theirs = Q(tenant__in=tenants) | Q(profile__in=taken - {""})
    common = partitions().exclude(theirs) if taken else partitions()
    for kind, label, count in common.order_by().values_list("service_type", "label").annotate(number=Count("*")):
        yield ClusterPartition("", ServiceType(kind), "", 0, SYSTEM_TENANT, "", label), count
    if not taken:
        return
    own = partitions().filter(theirs).order_by().values_list("service_type", "label", "tenant", "profile")
    for kind, label, tenant, profile, count in own.annotate(number=Count("*")):
        yield ClusterPartition("", ServiceType(kind), "", 0, tenant, profile, label), count


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
