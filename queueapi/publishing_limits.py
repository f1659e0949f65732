"""What a tenant may publish, as the database says now."""

from dataclasses import dataclass
from uuid import UUID

from queueapi import runtime
from queueapi.choices import TenantState
from queueapi.errors import InvalidInput
from queueapi.models import Tenant
from queueapi.quotas import Quotas
from queuecore.groups.lag import describe_existing


@dataclass(frozen=True, slots=True)
class Limits:
    """suspended_for  why it may publish nothing; empty: it may
    stored_bytes   of the messages in its own queues; 0 where no quota asks
    """

    name: str
    suspended_for: str
    quotas: Quotas
    stored_bytes: int

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing that it publishes has to be counted first."""
        quotas = self.quotas
        limits = (quotas.messages_per_s, quotas.bytes_per_s, quotas.stored_bytes)
        return not self.suspended_for and all(limit is None for limit in limits)


def read_limits(tenant_id: UUID) -> Limits:
    """One query; where it has a quota of stored bytes, its queues and their sizes as well. InvalidInput where there is
    no such tenant."""
    tenant = Tenant.objects.select_related("profile").filter(pk=tenant_id).first()
    if tenant is None:
        raise InvalidInput(f"there is no tenant {tenant_id}; name one that is there")
    reason = tenant.reason if tenant.state == TenantState.SUSPENDED else ""
    quotas = tenant.quotas
    return Limits(tenant.name, reason, quotas, 0 if quotas.stored_bytes is None else stored_bytes(tenant))


def stored_bytes(tenant: Tenant) -> int:
    """Of the messages in its own queues, as far as the provider can say."""
    names = {name for queue in tenant.queues.all() for name in queue.topic_names()}
    described = describe_existing(runtime.provider().admin(), names)
    return sum(one.size_bytes or 0 for topic in described.values() for one in topic.partitions)
