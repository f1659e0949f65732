"""One entry of a configuration document, entered by the actions that people use: made where it is missing, changed
where it differs, and left alone where it does not. Each gives the thing as it was, as it is, and what to mind."""

import base64
from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from queueapi.actions.actor import Actor
from queueapi.actions.configuration_checks import (
    NEVER,
    Entered,
    Values,
    check_fixed,
    check_needed,
    named,
    too_little,
)
from queueapi.actions.message_types import Description, change_message_type, create_message_type
from queueapi.actions.queue_checks import CHANGEABLE
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.tenant_profiles import change_profile, create_profile, plan_profile_change
from queueapi.actions.tenant_states import resume_tenant, suspend_tenant
from queueapi.actions.tenants import change_tenant, create_tenant, plan_tenant_change, plan_tenant_creation
from queueapi.choices import QueueState, TenantState
from queueapi.configuration.sections import FIXED_OF_QUEUES, MESSAGE_TYPES, QUEUES
from queueapi.errors import InvalidInput, QueueNotActive
from queueapi.models import MessageType, Queue, Tenant, TenantProfile
from queueapi.selectors import configuration as told
from queueapi.selectors.queue_operations import operation_under_way
from queueapi.selectors.queue_warnings import queue_warnings

Row = TypeVar("Row", Tenant, TenantProfile)


def enter_profile(actor: Actor, values: Mapping[str, Any]) -> Entered:
    wanted_id, fields = _without_id(values)
    row = _find("profile", TenantProfile.objects.all(), wanted_id, fields["name"])
    if row is None:
        made = told.profile_values(create_profile(actor, profile_id=wanted_id, **fields))
        return Entered(None, _as_given(made, values))
    before, plan = told.profile_values(row), plan_profile_change(row, **fields)
    return Entered(before, told.profile_values(change_profile(actor, row, **fields)), plan.warnings)


def enter_tenant(actor: Actor, values: Mapping[str, Any]) -> Entered:
    wanted_id, fields = _without_id(values)
    state, reason = fields.pop("state", None), fields.pop("reason", "")
    if "profile" in fields:
        fields["profile"] = named("profile", "profile", TenantProfile.objects.all(), fields["profile"])
    row = _find("tenant", Tenant.objects.all(), wanted_id, fields["name"])
    if row is None:
        before, warnings = None, plan_tenant_creation(**fields).warnings
        row = create_tenant(actor, tenant_id=wanted_id, **fields)
    else:
        before, warnings = told.tenant_values(row), plan_tenant_change(row, **fields).warnings
        row = change_tenant(actor, row, **fields)
    _set_state(actor, row, state, reason)
    after = told.tenant_values(Tenant.objects.select_related("profile").get(pk=row.pk))
    return Entered(before, after if before else _as_given(after, values), warnings)


def enter_queue(actor: Actor, values: Mapping[str, Any]) -> Entered:
    fields = dict(values)
    tenant = named("tenant", "tenant", Tenant.objects.all(), fields.pop("tenant"))
    row = Queue.objects.filter(tenant=tenant, name__iexact=fields["name"]).select_related("tenant", "operation").first()
    if row is None:
        return _new_queue(actor, tenant, fields)
    if row.state == QueueState.DELETING:
        raise QueueNotActive(f"queue {row.name} is being deleted; import again when it is gone")
    before = told.queue_values(row)
    remedy = "stored messages depend on it: keep that, or create another queue and drain this one to it"
    if "partitions" in fields and fields["partitions"] != row.partitions:
        remedy = f"{remedy}; another number of partitions is a resize of the queue"
    check_fixed(before, {name: fields[name] for name in FIXED_OF_QUEUES if name in fields}, remedy)
    changes = {name: fields[name] for name in CHANGEABLE if name in fields and fields[name] != before[name]}
    if not changes and not _has_failed(row):
        return Entered(before, before)
    changed = change_queue(actor, row, **changes)
    after = told.queue_values(changed)
    secret_in = "handler_options" if changed.version != row.version and after == before else ""
    return Entered(before, after, tuple(queue_warnings(changed, changes)), secret_in)


def enter_message_type(actor: Actor, values: Mapping[str, Any]) -> Entered:
    row = MessageType.objects.filter(name__iexact=values["name"]).first()
    if row is None:
        return _new_message_type(actor, values)
    before = told.message_type_values(row)
    fixed = {name: values[name] for name in ("name", "message") if name in values}
    check_fixed(before, fixed, "stored messages were made as that: keep it, or enter another message type")
    is_same = all(before.get(name) == values[name] for name in ("files", "descriptor_set") if name in values)
    description = None if is_same else _description(values)
    change_message_type(actor, row, description=description, topics=values.get("topics"))
    return Entered(before, told.message_type_values(MessageType.objects.get(pk=row.pk)))


def _new_queue(actor: Actor, tenant: Tenant, fields: Values) -> Entered:
    check_needed(QUEUES, fields)
    queue = create_queue(actor, tenant, **fields)
    after = told.queue_values(queue)
    return Entered(None, after, tuple(queue_warnings(queue, after)))


def _new_message_type(actor: Actor, values: Mapping[str, Any]) -> Entered:
    if (description := _description(values)) is None:
        why = "give these, or a descriptor_set, for a message type that is new"
        raise too_little(MESSAGE_TYPES, values, files=[why])
    check_needed(MESSAGE_TYPES, values)
    fields = {"name": values["name"], "message": values["message"], "topics": values.get("topics", ())}
    return Entered(None, told.message_type_values(create_message_type(actor, description=description, **fields)))


def _has_failed(queue: Queue) -> bool:
    """Whether its creation has been given up: an import tries it again."""
    return queue.state == QueueState.CREATING and operation_under_way(queue) is None


def _set_state(actor: Actor, tenant: Tenant, state: str | None, reason: str) -> None:
    """Of what is suspended for another reason, that is told."""
    if state == TenantState.ACTIVE or (state == TenantState.SUSPENDED and tenant.reason not in ("", reason)):
        tenant = resume_tenant(actor, tenant)
    if state == TenantState.SUSPENDED:
        suspend_tenant(actor, tenant, reason)


def _description(values: Mapping[str, Any]) -> Description | None:
    if "files" in values:
        return Description.of(values["files"])
    if "descriptor_set" not in values:
        return None
    try:
        return Description(base64.b64decode(values["descriptor_set"], validate=True))
    except ValueError as error:
        raise InvalidInput(f"descriptor_set: this is not base64: {error}") from error


def _without_id(values: Mapping[str, Any]) -> tuple[UUID | None, Values]:
    fields = dict(values)
    wanted = fields.pop("id", None)
    return None if wanted is None else UUID(wanted), fields


def _as_given(made: Values, values: Mapping[str, Any]) -> Values:
    """Without an id that nobody gave: a plan's would be another than that of the import."""
    return {name: value for name, value in made.items() if name != "id" or name in values}


def _find(thing: str, rows: QuerySet[Row], wanted_id: UUID | None, name: str) -> Row | None:
    """By its id, whatever it is called; else by its name. InvalidInput where these are two things."""
    found = rows.filter(pk=wanted_id).first() if wanted_id else None
    found = found or rows.filter(name__iexact=name).first()
    if found is not None and wanted_id not in (None, found.pk):
        remedy = f"leave id out to mean that {thing}, or choose another name"
        never = NEVER.format(name=f"that of {thing} {found.name}", is_=str(found.pk), remedy=remedy)
        raise InvalidInput(f"id: {never}")
    return found
