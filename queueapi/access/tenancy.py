"""Whose things are whose. What a tenant's people do not see does not exist for them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Model, Prefetch, Q, QuerySet

from queueapi.access.principals import Principal
from queueapi.errors import NotChangeable
from queueapi.models import (
    ApiToken,
    AuditEntry,
    DeadLetter,
    DeadLetterGroup,
    IsolationRequest,
    LagCurrent,
    Operation,
    Pause,
    QuarantinedLetter,
    Queue,
    Replay,
    Tenant,
)
from queueapi.selectors.letter_filter import LetterFilter, Selection
from queuecore.topics import SYSTEM_TENANT

Row = TypeVar("Row", bound=Model)
Counted = TypeVar("Counted")


def _queues(rows: QuerySet[Any], tenant: UUID) -> QuerySet[Any]:
    """Its own and the system's, whose pauses of other tenants are theirs."""
    pauses = Pause.objects.filter(Q(tenant__isnull=True) | Q(tenant=tenant))
    seen = rows.filter(tenant__in=(tenant, SYSTEM_TENANT))
    return seen.prefetch_related(None).prefetch_related(Prefetch("pauses", pauses))


_SEEN: Final[Mapping[type[Model], Callable[[QuerySet[Any], UUID], QuerySet[Any]]]] = {
    Tenant: lambda rows, tenant: rows.filter(id=tenant),
    Queue: _queues,
    LagCurrent: lambda rows, tenant: rows.filter(queue__tenant__in=(tenant, SYSTEM_TENANT)),
    # In a queue of a tenant's own every letter is that tenant's. One of a shared queue that names nobody is nobody's.
    DeadLetter: lambda rows, tenant: rows.filter(tenant=tenant),
    # A group of a shared queue has letters, and an error's text, of several tenants.
    DeadLetterGroup: lambda rows, tenant: rows.filter(queue__tenant=tenant),
    QuarantinedLetter: lambda rows, tenant: rows.filter(queue__tenant=tenant),
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
