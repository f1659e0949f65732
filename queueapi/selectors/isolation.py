"""Isolation requests, with what lists and pages tell of them."""

from collections.abc import Mapping
from typing import Any, Final

from django.db.models import OuterRef, QuerySet, Subquery

from queueapi.choices import IsolationState
from queueapi.cluster.models import Partition
from queueapi.models import ConsumerStanding, IsolationRequest, OperationLogEntry, Queue
from queuecore.topics import SYSTEM_TENANT

NOT_CARRIED_OUT: Final = (IsolationState.REQUESTED, IsolationState.REFUSED, IsolationState.RETIRED)


def isolation_requests() -> QuerySet[IsolationRequest]:
    """Each with the last line of the log of its operation: what is done, or waited for."""
    lines = OperationLogEntry.objects.filter(operation=OuterRef("operation")).order_by("-id").values("text")[:1]
    rows = IsolationRequest.objects.select_related("tenant__profile", "operation").prefetch_related("comments")
    return rows.annotate(last_line=Subquery(lines))


def undecided_requests() -> QuerySet[IsolationRequest]:
    """Those that wait for somebody to decide on them, the oldest first."""
    return IsolationRequest.objects.filter(state=IsolationState.REQUESTED).order_by("created_at", "id")


def isolated_queues(request: IsolationRequest) -> list[Queue]:
    """The tenant's own queues that the request is about, as far as they are there."""
    names = {name.lower() for name in request.queue_names}
    rows = Queue.objects.filter(tenant=request.tenant_id).select_related("tenant", "successor").order_by("name")
    return [queue for queue in rows if queue.name.lower() in names]


def isolation_of(queue: Queue) -> IsolationRequest | None:
    """The request that made the queue a tenant's own, if one did."""
    rows = IsolationRequest.objects.filter(tenant=queue.tenant_id).exclude(state__in=NOT_CARRIED_OUT)
    # One that has failed may have been followed by another.
    carried_out = sorted(rows, key=lambda one: one.state == IsolationState.FAILED)
    return next((one for one in carried_out if _makes(one, queue.name)), None)


def isolated_from(queue: Queue) -> list[str]:
    """The tenants whose isolation from this shared queue is carried out, or was."""
    if queue.only_tenant_id is not None:
        return []
    owns = Queue.objects.filter(name__iexact=queue.name, service_type=queue.service_type).exclude(pk=queue.pk)
    rows = IsolationRequest.objects.filter(tenant__in=owns.values("tenant")).exclude(state__in=NOT_CARRIED_OUT)
    # One that has failed may have been followed by another, of the same tenant.
    tenants = {one.tenant_id: one.tenant.name for one in rows.select_related("tenant") if _makes(one, queue.name)}
    return sorted(tenants.values())


def _makes(request: IsolationRequest, name: str) -> bool:
    """Whether it makes a queue that is called so, whatever the case."""
    return name.lower() in {each.lower() for each in request.queue_names}


def shared_twin(queue: Queue) -> Queue | None:
    """The queue of the same name that all share: where a tenant's messages go if it has none of its own."""
    if queue.only_tenant_id is None:
        return None
    same = Queue.objects.filter(tenant=SYSTEM_TENANT, service_type=queue.service_type)
    return same.filter(name__iexact=queue.name).first()


def unheld(queue: Queue, version: int) -> str:
    """Who may consume the queue by an older version of its row, as far as is known; empty: nobody."""
    owners = _owners(queue)
    told: dict[tuple[str, int], int] = {}
    for standing in ConsumerStanding.objects.filter(queue=queue):
        told |= {(standing.service_id, number): standing.queue_version for number in standing.partitions}
    for number in queue.consumed_numbers:
        if (owner := owners.get(number)) is None:
            return f"waits until somebody has partition {number} of queue {queue.name}, and holds the tenant back there"
        if told.get((owner, number), 0) < version:
            return f"waits until {owner} holds the tenant back in partition {number} of queue {queue.name}"
    return ""


def _owners(queue: Queue) -> Mapping[int, Any]:
    rows = Partition.objects.filter(name__in=queue.topic_names(), is_removed=False)
    return dict(rows.values_list("number", "owner"))
