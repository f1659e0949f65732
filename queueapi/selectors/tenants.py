"""Tenants and their profiles, with what lists show of them, and where each quota comes from."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import OuterRef, QuerySet

from queueapi.models import AuditEntry, Queue, Tenant, TenantProfile
from queueapi.quotas import QUOTAS
from queueapi.selectors.counting import number_of
from queueapi.selectors.services import living


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """One quota that holds for a tenant; `is_own` where its profile says something else or nothing."""

    name: str
    value: int | None
    is_own: bool
    of_profile: int | None


def tenants_with_counts() -> QuerySet[Tenant]:
    """Each with its profile, and with how many queues of its own it has."""
    return Tenant.objects.select_related("profile").annotate(
        queue_count=number_of(Queue.objects.filter(tenant=OuterRef("pk")), "tenant")
    )


def profiles_with_counts() -> QuerySet[TenantProfile]:
    """Each with how many tenants have it."""
    return TenantProfile.objects.annotate(
        tenant_count=number_of(Tenant.objects.filter(profile=OuterRef("pk")), "profile")
    )


def quota_lines(tenant: Tenant) -> list[QuotaLine]:
    quotas = tenant.quotas
    return [
        QuotaLine(name, getattr(quotas, name), getattr(tenant, name) is not None, getattr(tenant.profile, name))
        for name in QUOTAS
    ]


def recent_audit(object_type: str, object_id: object, most: int = 10) -> list[AuditEntry]:
    """The newest first."""
    return list(AuditEntry.objects.filter(object_type=object_type, object_id=str(object_id))[:most])


def audit_of_tenant(tenant_id: UUID, most: int = 10) -> list[AuditEntry]:
    """What was done to the tenant or anything that is its, the newest first."""
    return list(AuditEntry.objects.filter(tenant_id=tenant_id)[:most])


def dedicated_services(profile: TenantProfile) -> list[str]:
    """The services that are there and consume the own queues of its tenants alone."""
    rows = living().values_list("service_id", "dedicated_to")
    return sorted(service for service, whose in rows if str(profile.id) in whose)
