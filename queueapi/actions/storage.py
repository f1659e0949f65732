"""What tenants have stored, for their usage."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from uuid import UUID

from queueapi.models import Queue, TenantUsageDay
from queuecore.groups.lag import describe_existing
from queuecore.providers.base import QueueAdmin, TopicDescription
from queuecore.topics import SYSTEM_TENANT


def record_storage(admin: QueueAdmin, today: date) -> int:
    """Note for today what each tenant's own queues hold now; the provider is asked for all at once. Where it cannot say
    all of a tenant's, what was noted before stays. How many were noted. What the day's usage has besides is left as it
    is."""
    topics: defaultdict[UUID, set[str]] = defaultdict(set)
    for queue in Queue.objects.exclude(tenant_id=SYSTEM_TENANT).order_by():
        topics[queue.tenant_id].update(queue.topic_names())
    described = describe_existing(admin, set().union(*topics.values()))
    known = {tenant: _size(described[name] for name in names if name in described) for tenant, names in topics.items()}
    # In one order, as the pipeline has them: two who upsert the same rows else wait for each other.
    noted = [(tenant, size) for tenant, size in sorted(known.items()) if size is not None]
    TenantUsageDay.objects.bulk_create(
        (TenantUsageDay(tenant_id=tenant, day=today, stored_bytes=size) for tenant, size in noted),
        update_conflicts=True,
        unique_fields=["tenant_id", "day"],
        update_fields=["stored_bytes"],
    )
    return len(noted)


def _size(topics: Iterable[TopicDescription]) -> int | None:
    """None where the provider does not know it of one of their partitions."""
    sizes = [one.size_bytes for topic in topics for one in topic.partitions]
    return None if None in sizes else sum(size or 0 for size in sizes)
