"""Tenants that are suspended for a while: nothing is published for them, and what they have is consumed as ever."""

from django.db import transaction

from queueapi.actions.actor import Actor, audit
from queueapi.admission import admission
from queueapi.change_plans import ChangePlan, difference, plan_of_row, shown
from queueapi.choices import TenantState
from queueapi.errors import InvalidInput, NotChangeable
from queueapi.models import Tenant

LONGEST_REASON = 500
_FIELDS = ("state", "reason")


def plan_suspension(tenant: Tenant, reason: str) -> ChangePlan:
    """What `suspend_tenant` would do now. InvalidInput as there."""
    return _plan("suspend", tenant, TenantState.SUSPENDED, _checked(reason), _why_not_suspendable(tenant))


def suspend_tenant(actor: Actor, tenant: Tenant, reason: str) -> Tenant:
    """Refuse what is published for it, everywhere within seconds, and tell the reason to whoever tries. Suspended
    already: the first reason stays. NotChangeable for the system's tenant, InvalidInput for a reason that is none."""
    reason = _checked(reason)
    if why_not := _why_not_suspendable(tenant):
        raise NotChangeable(why_not)
    return _change(actor, "suspend", tenant, TenantState.SUSPENDED, reason)


def plan_resumption(tenant: Tenant) -> ChangePlan:
    """What `resume_tenant` would do now."""
    return _plan("resume", tenant, TenantState.ACTIVE, "")


def resume_tenant(actor: Actor, tenant: Tenant) -> Tenant:
    """Let it publish again. Not suspended: nothing changes."""
    return _change(actor, "resume", tenant, TenantState.ACTIVE, "")


def _plan(action: str, tenant: Tenant, state: TenantState, reason: str, why_not: str = "") -> ChangePlan:
    before, after = (Tenant.objects.get(pk=tenant.pk) for _ in range(2))
    if before.state != state:
        after.state, after.reason = state, reason
    names = difference(before, after, _FIELDS)
    old, new = shown(before, names), shown(after, names)
    return plan_of_row(f"{action} tenant {tenant.name}", old, new, why_not=why_not)


def _change(actor: Actor, action: str, tenant: Tenant, state: TenantState, reason: str) -> Tenant:
    with transaction.atomic():
        changed = Tenant.objects.select_for_update().get(pk=tenant.pk)
        if changed.state == state:
            return changed
        before = shown(changed, _FIELDS)
        changed.state, changed.reason = state, reason
        changed.save(update_fields=[*_FIELDS, "updated_at"])
        audit(actor, action, "tenant", changed.id, before=before, after=shown(changed, _FIELDS))
        transaction.on_commit(lambda: admission().look_again(changed.id))
    return changed


def _why_not_suspendable(tenant: Tenant) -> str:
    return "the system's own messages keep everybody's queues going; pause a queue instead" if tenant.is_system else ""


def _checked(reason: str) -> str:
    reason = reason.strip()
    if not 1 <= len(reason) <= LONGEST_REASON or "\0" in reason:
        raise InvalidInput(
            f"say in 1 to {LONGEST_REASON} characters why it is suspended: whoever is refused wants to know; "
            f"{len(reason)} were given"
        )
    return reason
