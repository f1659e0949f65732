"""Who consumes what, how they are, and what stands still on somebody's word."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet, Sum

from queueapi.choices import TROUBLED_CONSUMER_STATES
from queueapi.models import ConsumerStanding, LetterEpoch, Pause, Queue, StaleCommits, Tenant
from queueapi.selectors.services import alive_among
from queuecore.consuming.counting import OTHER_TENANTS

TENANTS_SHOWN: Final = 10

_NAMES: Final = {"": "none named", OTHER_TENANTS: "others"}


def consumers_of(queue: Queue) -> list[ConsumerStanding]:
    """By partition; those of hosts whose lease has expired as well, as they were last."""
    standings = list(ConsumerStanding.objects.filter(queue=queue))
    alive = alive_among(one.service_id for one in standings)
    for one in standings:
        one.is_alive = one.service_id in alive
    return sorted(standings, key=lambda one: (one.partitions, one.service_id))


@dataclass(frozen=True, slots=True)
class Refusals:
    """What came from consumers that had lost their partition: commits, and dead letters."""

    commits: int
    letters: int

    def __bool__(self) -> bool:
        return bool(self.commits or self.letters)


def refusals_of(queue: Queue) -> Refusals:
    letters = LetterEpoch.objects.filter(topic__in=queue.topic_names()).aggregate(refused=Sum("refused"))["refused"]
    commits = StaleCommits.objects.filter(queue=queue).values_list("refused", flat=True).first()
    return Refusals(commits or 0, letters or 0)


@dataclass(frozen=True, slots=True)
class TenantAttempts:
    """How often messages of a tenant were handed to handlers, and what came of it."""

    name: str
    total: int
    succeeded: int
    failed: int
    timed_out: int
    # Empty where no tenant that is there was named.
    tenant_id: str = ""


def attempts_by_tenant(consumers: Iterable[ConsumerStanding]) -> tuple[list[TenantAttempts], int]:
    """Of these consumers together, most first; and how many tenants more there are."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for consumer in consumers:
        for tenant, counted in consumer.tenants.items():
            counts[tenant].update(counted)
    most = sorted(counts, key=lambda tenant: (-counts[tenant]["total"], tenant))[:TENANTS_SHOWN]
    names = {str(tenant.id): tenant.name for tenant in Tenant.objects.filter(id__in={*most} - _NAMES.keys())}
    rows = [_attempts(tenant, names.get(tenant), counts[tenant]) for tenant in most]
    return rows, len(counts) - len(rows)


def _attempts(tenant: str, name: str | None, counts: Counter[str]) -> TenantAttempts:
    return TenantAttempts(
        name or _NAMES.get(tenant, tenant),
        total=counts["total"],
        succeeded=counts["succeeded"],
        failed=counts["failed"] + counts["tmp_failed"],
        timed_out=counts["timed_out"] + counts["tmp_timed_out"],
        tenant_id=tenant if name else "",
    )


def troubled_consumers(alive: Iterable[str]) -> QuerySet[ConsumerStanding]:
    """Those of these hosts that do not get on, the longest first."""
    return (
        ConsumerStanding.objects.filter(state__in=TROUBLED_CONSUMER_STATES, service_id__in=list(alive))
        .select_related("queue__tenant")
        .defer("tenants")
        .order_by("since")
    )


def pauses_of(queue: Queue) -> QuerySet[Pause]:
    return queue.pauses.select_related("tenant")


def all_pauses() -> QuerySet[Pause]:
    return Pause.objects.select_related("queue__tenant", "tenant")
