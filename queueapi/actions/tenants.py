"""Tenants."""

from uuid import UUID, uuid4

from django.core.exceptions import ValidationError
from django.db import transaction

from queueapi.actions.actor import SYSTEM, Actor, audit
from queueapi.errors import InvalidInput
from queueapi.models import Tenant
from queuecore.topics import SYSTEM_TENANT


def create_tenant(actor: Actor, name: str, tenant_id: UUID | None = None) -> Tenant:
    tenant = Tenant(id=tenant_id or uuid4(), name=name)
    try:
        tenant.full_clean()
    except ValidationError as error:
        raise InvalidInput("; ".join(error.messages), fields=error.message_dict) from error
    with transaction.atomic():
        tenant.save(force_insert=True)
        audit(actor, "create", "tenant", tenant.id, after={"name": name})
    return tenant


def ensure_system_tenant() -> Tenant:
    """The tenant that owns the shared queues; made on first use."""
    tenant = Tenant.objects.filter(id=SYSTEM_TENANT).first()
    return tenant or create_tenant(SYSTEM, "System", SYSTEM_TENANT)
