"""Whether a tenant may have a queue of its own like this. Its profile says so, and its quota of partitions."""

from collections.abc import Collection, Iterator

from django.db.models import Sum

from queueapi.errors import InvalidInput
from queueapi.models import Queue, Tenant
from queueapi.models.tenant_profile import TenantProfile
from queuecore.providers.base import FOR_EVER

_STRATEGIES = (("submit_strategy", "submit_strategies"), ("processing_strategy", "processing_strategies"))


def check_own_queue(queue: Queue) -> None:
    """InvalidInput for a new queue that its tenant's profile does not allow; nothing is asked of the system's. Call it
    in the transaction that stores the queue: the tenant is locked until its end, so that two queues do not pass one by
    one that are too many together."""
    if queue.only_tenant_id is None:
        return
    tenant = Tenant.objects.select_for_update(of=("self",)).select_related("profile").get(pk=queue.tenant_id)
    if problem := next(_problems(queue, tenant), None):
        raise InvalidInput(f"{problem}; tenant {tenant.name} has profile {tenant.profile.name}: have that changed")


def usual_retention_ms(tenant: Tenant) -> int:
    """How long a new queue of the tenant keeps its messages where nobody says so: as all do, within its profile."""
    usual_ms: int = Queue._meta.get_field("retention_ms").get_default()  # noqa: SLF001 - Django's documented way to ask
    return usual_ms if tenant.is_system else tenant.profile.retention_ms(usual_ms)


def check_change(queue: Queue, changed: Collection[str]) -> None:
    """InvalidInput for a strategy or a retention that was changed to one that the tenant's profile does not allow."""
    if queue.only_tenant_id is not None:
        profile = queue.tenant.profile
        if problem := next(_disallowed(queue, profile, changed), None):
            raise InvalidInput(f"{problem}; tenant {queue.tenant.name} has profile {profile.name}: have that changed")


def _problems(queue: Queue, tenant: Tenant) -> Iterator[str]:
    profile, others = tenant.profile, tenant.queues.exclude(pk=queue.pk)
    if profile.max_queues is not None and (count := others.count()) >= profile.max_queues:
        yield f"{count:,} queues of its own are there, and {profile.max_queues:,} the most"
    most = profile.max_partitions_per_queue
    if most is not None and queue.partitions > most:
        yield f"partitions: use at most {most:,}; {queue.partitions:,} were asked for"
    most = tenant.quotas.partitions
    used = others.aggregate(used=Sum("partitions"))["used"] or 0
    if most is not None and used + queue.partitions > most:
        yield f"partitions: its own queues may have {most:,} together, and {used:,} of them are used"
    yield from _disallowed(queue, profile, ["retention_ms", *(field for field, _ in _STRATEGIES)])


def _disallowed(queue: Queue, profile: TenantProfile, fields: Collection[str]) -> Iterator[str]:
    kept_ms = queue.retention_ms
    if "retention_ms" in fields and kept_ms != FOR_EVER and profile.retention_ms(kept_ms) != kept_ms:
        yield f"retention_ms: {kept_ms:,} is not allowed; the next that is, is {profile.retention_ms(kept_ms):,}"
    if "retention_ms" in fields and kept_ms == FOR_EVER and profile.max_retention_ms is not None:
        yield f"retention_ms: messages cannot be kept for ever; use at most {profile.max_retention_ms:,}"
    for field, allowed in _STRATEGIES:
        kinds: list[str] = getattr(profile, allowed)
        if field in fields and kinds and getattr(queue, field) not in kinds:
            yield f"{field}: {getattr(queue, field)} is not among {', '.join(kinds)}"
