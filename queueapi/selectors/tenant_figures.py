"""What is one tenant's: the queues its messages go through, its open letters, and what it used."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from queueapi.choices import LetterState
from queueapi.models import DeadLetterGroup, DeadLetterTally, Pause, Queue, Tenant, TenantUsageDay
from queueapi.selectors.lag import queue_lags
from queueapi.selectors.queue_rows import QueueRow, queue_rows
from queueapi.selectors.tenants import QuotaLine, quota_lines
from queuecore.topics import SYSTEM_TENANT, ServiceType

GROUPS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class HitGroup:
    """A group of letters, and how many of them are this tenant's and open."""

    group: DeadLetterGroup
    open_letters: int


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """A quota, and how much of it is used; None where that is not counted."""

    line: QuotaLine
    used: int | None

    @property
    def share(self) -> float | None:
        """0 to 1, and beyond where a limit was lowered since."""
        if self.used is None or not self.line.value:
            return None
        return self.used / self.line.value


def queues_used_by(tenant_id: UUID) -> QuerySet[Queue]:
    """Its own, and of the rule engine's shared ones those in whose place it has none."""
    return Queue.objects.filter(Q(tenant=tenant_id) | _shared_with(tenant_id)).select_related("tenant")


@dataclass(frozen=True, slots=True)
class UsedQueues:
    """The first of a tenant's own queues by name, and of the shared ones that its messages go through."""

    own: list[QueueRow]
    shared: list[QueueRow]


def first_used_by(tenant: Tenant, most: int) -> UsedQueues:
    """So many of each, found by one query. What is told of them is this tenant's, as `rows_for_tenant` has it; of the
    system's queues it is everyone's, and it shares none with itself."""
    own = tenant.queues.select_related("tenant").order_by("name")
    if tenant.is_system:
        return UsedQueues(queue_rows(own[:most]), [])
    shared = Queue.objects.filter(_shared_with(tenant.pk)).order_by("name")
    first = Q(pk__in=own.values("pk")[:most]) | Q(pk__in=shared.values("pk")[:most])
    listed = Queue.objects.filter(first).select_related("tenant").order_by("name")
    rows = rows_for_tenant(tenant.pk, listed)
    return UsedQueues(
        [row for row in rows if row.queue.tenant_id == tenant.pk],
        [row for row in rows if row.queue.tenant_id != tenant.pk],
    )


def rows_for_tenant(tenant_id: UUID, queues: Iterable[Queue]) -> list[QueueRow]:
    """These, in their order, with the tenant's letters and pauses alone: of a shared queue the others' are theirs. Four
    queries, however many they are."""
    lags = queue_lags(queues)
    ids = [lag.queue.pk for lag in lags]
    letters = open_letters_by_queue(tenant_id, ids)
    pauses: defaultdict[UUID, list[Pause]] = defaultdict(list)
    for pause in pauses_seen_by(tenant_id).filter(queue__in=ids):
        pauses[pause.queue_id].append(pause)
    return [QueueRow(lag.queue, lag, letters.get(lag.queue.pk, 0), pauses[lag.queue.pk]) for lag in lags]


def pauses_seen_by(tenant_id: UUID) -> QuerySet[Pause]:
    return Pause.objects.filter(Q(tenant=None) | Q(tenant=tenant_id)).select_related("tenant")


def open_letters_by_queue(tenant_id: UUID, queues: Iterable[UUID] | None = None) -> Mapping[UUID, int]:
    """Of this tenant; queues without any are missing."""
    tallies = _open_tallies(tenant_id)
    if queues is not None:
        tallies = tallies.filter(group__queue__in=list(queues))
    return dict(tallies.order_by().values_list("group__queue").annotate(number=Sum("letters")))


def open_groups_of(tenant_id: UUID) -> list[HitGroup]:
    """The errors that most of its open letters have, most first."""
    tallies = _open_tallies(tenant_id).select_related("group__queue__tenant").order_by("-letters")
    return [HitGroup(tally.group, tally.letters) for tally in tallies[:GROUPS_SHOWN]]


def usage_of(tenant_id: UUID, days: int) -> list[TenantUsageDay]:
    """Of the last days on which it used something, the oldest first; today is one of them."""
    since = today() - timedelta(days=days - 1)
    return list(TenantUsageDay.objects.filter(tenant_id=tenant_id, day__gte=since).order_by("day"))


def quota_uses(tenant: Tenant, usage: Iterable[TenantUsageDay]) -> list[QuotaUse]:
    """What holds for it, and what is used of what adds up. `usage` is of the last days."""
    stored = next((one.stored_bytes for one in reversed(list(usage)) if one.stored_bytes is not None), None)
    used = {
        "partitions": tenant.queues.aggregate(used=Sum("partitions"))["used"] or 0,
        "stored_bytes": stored,
    }
    return [QuotaUse(line, used.get(line.name)) for line in quota_lines(tenant)]


def today() -> date:
    """By UTC, as usage is counted."""
    return timezone.now().date()


def _shared_with(tenant_id: UUID) -> Q:
    own = Queue.objects.filter(tenant=tenant_id, name__iexact=OuterRef("name"))
    return Q(tenant=SYSTEM_TENANT, service_type=ServiceType.TB_RULE_ENGINE.value) & Q(~Exists(own))


def _open_tallies(tenant_id: UUID) -> QuerySet[DeadLetterTally]:
    return DeadLetterTally.objects.filter(tenant_id=tenant_id, state=LetterState.OPEN, letters__gt=0)
