"""What tenants used, by day and over many days."""

from collections.abc import Collection
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery, Sum

from queueapi.models import Tenant, TenantUsageDay

_SUMMED: Final = ("sent", "sent_bytes", "handled", "handled_bytes", "errors", "dead_letters")


def usage_days() -> QuerySet[TenantUsageDay]:
    """With `tenant_name`; None where the tenant is no more."""
    names = Tenant.objects.filter(pk=OuterRef("tenant_id")).values("name")
    return TenantUsageDay.objects.annotate(tenant_name=Subquery(names[:1]))


def usage_totals(days: QuerySet[TenantUsageDay]) -> QuerySet[Any, Any]:
    """Of each tenant that has any of these days: what it used on all of them (`all_…`), the most that its own queues
    held, and what they held on each of them added up; both None where that is not known of any."""
    figures: dict[str, Any] = {
        "days": Count("pk", filter=Q(sent__gt=0) | Q(handled__gt=0)),
        "most_stored_bytes": Max("stored_bytes"),
        "stored_byte_days": Sum("stored_bytes"),
        **{f"all_{name}": Sum(name) for name in _SUMMED},
    }
    totals = days.order_by().values("tenant_id").annotate(**figures)
    return totals.values_list("tenant_id", *figures, named=True)


def names_of(tenants: Collection[UUID]) -> dict[UUID, str]:
    """Of those that there are. Asked for beside the totals: with a name in each group, all days would be looked at
    before the first tenant is told."""
    return dict(Tenant.objects.filter(pk__in=tenants).values_list("pk", "name"))
