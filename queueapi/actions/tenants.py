"""Tenants: created and changed; each can be planned first."""

from collections.abc import Collection, Iterator
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import transaction

from queueapi.actions.actor import SYSTEM, Actor, audit
from queueapi.actions.messages import MAX_PAYLOAD_BYTES
from queueapi.actions.row_checks import check_names, check_row, storing
from queueapi.admission import admission
from queueapi.change_plans import ChangePlan, difference, entered, plan_of_row, shown
from queueapi.models import Tenant
from queueapi.quotas import QUOTAS
from queuecore.topics import SYSTEM_TENANT

TENANT_FIELDS: Final = ("name", "description", "profile", *QUOTAS)


def plan_tenant_creation(name: str, **fields: Any) -> ChangePlan:
    """What `create_tenant` would do. InvalidInput as there."""
    tenant = _new(uuid4(), {"name": name, **fields})
    after, warnings = shown(tenant, TENANT_FIELDS), _warnings(tenant, TENANT_FIELDS)
    return plan_of_row(f"create tenant {name}", None, after, warnings)


def create_tenant(actor: Actor, name: str, tenant_id: UUID | None = None, **fields: Any) -> Tenant:
    """With the default profile where none is named. InvalidInput says what to enter instead."""
    tenant = _new(tenant_id or uuid4(), {"name": name, **fields})
    with transaction.atomic():
        with storing(f"tenant {name}"):
            tenant.save(force_insert=True)
        whose = None if tenant.is_system else tenant.id
        audit(actor, "create", "tenant", tenant.id, tenant_id=whose, after=shown(tenant, TENANT_FIELDS))
    return tenant


def plan_tenant_change(tenant: Tenant, **changes: Any) -> ChangePlan:
    """What `change_tenant` would do now. InvalidInput as there."""
    before = Tenant.objects.get(pk=tenant.pk)
    after = _changed(before, changes)
    names = difference(before, after, TENANT_FIELDS)
    old, new = shown(before, names), shown(after, names)
    return plan_of_row(f"change tenant {before.name}", old, new, _warnings(after, names))


def change_tenant(actor: Actor, tenant: Tenant, **changes: Any) -> Tenant:
    """The tenant as it is then: quotas hold within seconds, and queues that it has stay as they are. Without a
    difference nothing is written. InvalidInput says what to enter instead."""
    with transaction.atomic():
        before = Tenant.objects.select_for_update().get(pk=tenant.pk)
        after = _changed(before, changes)
        if names := difference(before, after, TENANT_FIELDS):
            with storing(f"tenant {after.name}"):
                after.save(update_fields=[*names, "updated_at"])
            audit(actor, "change", "tenant", after.id, before=shown(before, names), after=shown(after, names))
            transaction.on_commit(lambda: admission().look_again(after.id))
    return after


def ensure_system_tenant() -> Tenant:
    """The tenant that owns the shared queues; made on first use."""
    tenant = Tenant.objects.filter(id=SYSTEM_TENANT).first()
    return tenant or create_tenant(SYSTEM, "System", SYSTEM_TENANT)


def _new(tenant_id: UUID, fields: dict[str, Any]) -> Tenant:
    check_names("tenant", fields, TENANT_FIELDS)
    tenant = Tenant(id=tenant_id, **fields)
    check_row(tenant)
    return tenant


def _changed(before: Tenant, changes: dict[str, Any]) -> Tenant:
    check_names("tenant", changes, TENANT_FIELDS)
    after = Tenant.objects.get(pk=before.pk)
    entered(after, changes)
    check_row(after)
    return after


def _warnings(tenant: Tenant, names: Collection[str]) -> Iterator[str]:
    if not {*names} & {"profile", *QUOTAS}:
        return
    quotas, used = tenant.quotas, own_partitions(tenant)
    if quotas.bytes_per_s is not None and quotas.bytes_at_once < MAX_PAYLOAD_BYTES:
        yield (
            f"messages of more than {quotas.bytes_at_once:,.0f} bytes are always refused: so many are "
            f"{quotas.burst_s} s of bytes_per_s"
        )
    if quotas.partitions is not None and used > quotas.partitions:
        yield (
            f"its own queues have {used:,} partitions, more than the {quotas.partitions:,} of its quota: they stay, "
            "and no other queue can be created"
        )


def own_partitions(tenant: Tenant) -> int:
    """How many its own queues have together."""
    return sum(tenant.queues.values_list("partitions", flat=True))
