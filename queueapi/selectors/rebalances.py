"""Rebalances, the partitions they move, and the operations that follow them."""

from collections.abc import Iterable
from statistics import median_low
from typing import Final
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from queueapi.choices import RebalanceState
from queueapi.cluster.models import ClusterState, Partition, Rebalance
from queueapi.models import Operation
from queuecore.cluster.balance import shares_of
from queuecore.cluster.eligibility import divide
from queuecore.cluster.view import ClusterView

# The kind of operation that follows a rebalance somebody asked for.
REBALANCE: Final = "rebalance"
_RECENT: Final = 20

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


def recent_pause_ms() -> int | None:
    """For how long a partition that moved was consumed by nobody: the middle of recent rebalances. None: none moved."""
    done = Rebalance.objects.filter(state=RebalanceState.DONE, pause_ms__isnull=False)
    recent = done.order_by("-created_at").values_list("pause_ms", flat=True)[:_RECENT]
    pauses = [pause_ms for pause_ms in recent if pause_ms is not None]
    return median_low(pauses) if pauses else None


def fair_shares(view: ClusterView) -> dict[str, float]:
    """How many partitions each service should have by its weight; one that is draining none."""
    usable = [info for name, info in view.services.items() if name not in view.draining]
    pools, _ = divide(usable, view.partitions.values())
    return shares_of(usable, pools)
