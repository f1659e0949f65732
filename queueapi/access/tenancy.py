"""Whose things are whose. What a tenant's people do not see does not exist for them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Model, Prefetch, Q, QuerySet

from queueapi.access.principals import Principal
from queueapi.errors import NotChangeable
from queueapi.models import (
    Alert,
    AlertRule,
    ApiToken,
    AuditEntry,
    DeadLetter,
    DeadLetterGroup,
    DeadLetterTrend,
    IsolationRequest,
    LagCurrent,
    LagDay,
    LagHour,
    LagMinute,
    Operation,
    PartitionHeat,
    Pause,
    ProcessingDay,
    ProcessingHour,
    ProcessingMinute,
    QuarantinedLetter,
    Queue,
    QueueSkew,
    Replay,
    Tenant,
    TenantUsageDay,
)
from queueapi.selectors.letter_filter import LetterFilter, Selection
from queuecore.topics import SYSTEM_TENANT

Row = TypeVar("Row", bound=Model)
Counted = TypeVar("Counted")
Share = dict[str, Any]


def _queues(rows: QuerySet[Any], tenant: UUID) -> QuerySet[Any]:
    """Its own and the system's, whose pauses of other tenants are theirs."""
    pauses = Pause.objects.filter(Q(tenant__isnull=True) | Q(tenant=tenant))
    seen = rows.filter(tenant__in=(tenant, SYSTEM_TENANT))
    return seen.prefetch_related(None).prefetch_related(Prefetch("pauses", pauses))


def _of_queues(rows: QuerySet[Any], tenant: UUID) -> QuerySet[Any]:
    """Figures of queues that it sees: how a shared one gets on concerns all who use it."""
    return rows.filter(queue__tenant__in=(tenant, SYSTEM_TENANT))


_SEEN: Final[Mapping[type[Model], Callable[[QuerySet[Any], UUID], QuerySet[Any]]]] = {
    Tenant: lambda rows, tenant: rows.filter(id=tenant),
    Queue: _queues,
    LagCurrent: _of_queues,
    LagMinute: _of_queues,
    LagHour: _of_queues,
    LagDay: _of_queues,
    ProcessingMinute: _of_queues,
    ProcessingHour: _of_queues,
    ProcessingDay: _of_queues,
    # Whose entities and messages these are, `visible_shares` tells.
    PartitionHeat: _of_queues,
    QueueSkew: _of_queues,
    TenantUsageDay: lambda rows, tenant: rows.filter(tenant_id=tenant),
    # In a queue of a tenant's own every letter is that tenant's. One of a shared queue that names nobody is nobody's.
    DeadLetter: lambda rows, tenant: rows.filter(tenant=tenant),
    # A group of a shared queue has letters, and an error's text, of several tenants.
    DeadLetterGroup: lambda rows, tenant: rows.filter(queue__tenant=tenant),
    DeadLetterTrend: lambda rows, tenant: rows.filter(queue__tenant=tenant),
    QuarantinedLetter: lambda rows, tenant: rows.filter(queue__tenant=tenant),
    # Alerts of what all share are the system's, and so are the rules for that.
    Alert: lambda rows, tenant: rows.filter(tenant=tenant),
    AlertRule: lambda rows, tenant: rows.filter(Q(tenant=tenant) | Q(queue__tenant=tenant)),
    # What the system's people started may be about anybody.
    Operation: lambda rows, tenant: rows.filter(tenant=tenant),
    Replay: lambda rows, tenant: rows.filter(operation__tenant=tenant),
    IsolationRequest: lambda rows, tenant: rows.filter(tenant=tenant),
    ApiToken: lambda rows, tenant: rows.filter(tenant=tenant),
    AuditEntry: lambda rows, tenant: rows.filter(tenant_id=tenant),
}


def visible(principal: Principal, rows: QuerySet[Row]) -> QuerySet[Row]:
    """Of these rows those that they may know of. Of what is not listed here, a tenant's people see nothing."""
    if principal.tenant_id is None:
        return rows
    narrow = _SEEN.get(rows.model)
    return rows.none() if narrow is None else narrow(rows, principal.tenant_id)


def is_shared(principal: Principal, row: Model) -> bool:
    """Whether it is the system's, which a tenant's people see and cannot change."""
    return principal.tenant_id is not None and isinstance(row, Queue) and row.tenant_id != principal.tenant_id


def visible_counts(principal: Principal, by_tenant: Mapping[str, Counted]) -> dict[str, Counted]:
    """Of what was counted for each tenant, under its id, what they may know of."""
    own = principal.tenant_id
    return {tenant: counted for tenant, counted in by_tenant.items() if own is None or tenant == str(own)}


def visible_shares(principal: Principal, queue: Queue, shares: list[Share]) -> list[Share]:
    """Of what a queue's messages were of, each with its `tenant_id`, what they may know of. In a queue of a tenant's
    own all of it is that tenant's."""
    own = principal.tenant_id
    return [share for share in shares if own in (None, queue.tenant_id) or share["tenant_id"] == str(own)]


def visible_filter(principal: Principal, wanted: LetterFilter) -> LetterFilter | None:
    """The same for letters of this tenant; None where it asks for another's."""
    if principal.tenant_id is None:
        return wanted
    if wanted.tenant not in (None, principal.tenant_id):
        return None
    return replace(wanted, tenant=principal.tenant_id)


def visible_selection(principal: Principal, selection: Selection) -> Selection:
    """The same, of letters that they may know of. NotChangeable where there are none such among those named: another's
    letter is as one that does not exist."""
    if isinstance(selection, LetterFilter):
        narrowed = visible_filter(principal, selection)
        return [] if narrowed is None else narrowed
    if principal.tenant_id is not None:
        wanted = set(selection)
        missing = len(wanted) - visible(principal, DeadLetter.objects.filter(id__in=wanted)).count()
        if missing:
            do = "does" if missing == 1 else "do"
            raise NotChangeable(f"{missing:,} of the letters {do} not exist; reload the list and choose again")
    return selection
