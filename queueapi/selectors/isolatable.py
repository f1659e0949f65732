"""What a tenant can still ask for, and what its profile and quotas leave it."""

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet, Sum

from queueapi.choices import OPEN_ISOLATION_STATES, QueueState
from queueapi.models import IsolationRequest, Queue, Tenant
from queuecore.topics import SYSTEM_TENANT, ServiceType


@dataclass(frozen=True, slots=True)
class Allowance:
    """What its own queues use of what they may; None: no limit."""

    queues: int
    max_queues: int | None
    partitions: int
    max_partitions: int | None

    @property
    def queues_left(self) -> int | None:
        return None if self.max_queues is None else max(0, self.max_queues - self.queues)

    @property
    def partitions_left(self) -> int | None:
        return None if self.max_partitions is None else max(0, self.max_partitions - self.partitions)


def isolatable_queues(tenant: Tenant) -> QuerySet[Queue]:
    """The shared queues that it could have of its own: those of the rule engine whose handlers remember nothing, and of
    whose name it has none yet."""
    shared = Queue.objects.filter(
        tenant=SYSTEM_TENANT,
        service_type=ServiceType.TB_RULE_ENGINE.value,
        state=QueueState.ACTIVE,
        state_topic="",
    )
    has = Queue.objects.filter(tenant=tenant, name__iexact=OuterRef("name"))
    return shared.exclude(Exists(has)).order_by("name")


def allowance_of(tenant: Tenant) -> Allowance:
    used = tenant.queues.aggregate(partitions=Sum("partitions"))["partitions"] or 0
    return Allowance(tenant.queues.count(), tenant.profile.max_queues, used, tenant.quotas.partitions)


def open_request(tenant: Tenant) -> IsolationRequest | None:
    """The one that is to be decided on, or carried out: there is no other beside it."""
    return IsolationRequest.objects.filter(tenant=tenant, state__in=OPEN_ISOLATION_STATES).first()
