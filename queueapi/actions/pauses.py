"""Pauses: a queue, a tenant's messages in it, or one of its partitions stands still until somebody says go on."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from queueapi.actions.actor import Actor, audit
from queueapi.actions.operations import lock_ours
from queueapi.errors import InvalidInput
from queueapi.models import Operation, Pause, Queue, Tenant
from queueapi.selectors.queue_operations import is_being_handed_over
from queueapi.selectors.queue_partitions import check_partition

LONGEST_REASON = 500


def pause_queue(
    actor: Actor, queue: Queue, *, reason: str, tenant: Tenant | None = None, partition: int | None = None
) -> Pause:
    """Hosts hand over nothing more of it within seconds; what is being handled is finished. What is paused already
    stays as it is, with the first reason. InvalidInput says what to enter instead."""
    _check_target(queue, tenant, partition)
    reason = _check_reason(reason)
    if actor.tenant_id is not None and is_being_handed_over(queue):
        raise InvalidInput(f"queue {queue.name}: its messages are just handed over, and others wait for that")
    with transaction.atomic():
        locked = Queue.objects.select_for_update().filter(pk=queue.pk)
        list(locked.values_list("pk"))
        pause, is_new = Pause.objects.get_or_create(
            queue=queue,
            tenant=tenant,
            partition=partition,
            operation=None,
            defaults={"reason": reason, "paused_by": actor.name},
        )
        if is_new:
            locked.update(version=F("version") + 1)
            audit(actor, "pause", "queue", queue.id, tenant_id=_whose(pause), after=_told(pause))
    return pause


def resume_queue(actor: Actor, queue: Queue, *, tenant: Tenant | None = None, partition: int | None = None) -> bool:
    """Lift exactly that pause; others of the queue hold on, and so do those of operations. False: there was none."""
    _check_target(queue, tenant, partition)
    with transaction.atomic():
        locked = Queue.objects.select_for_update().filter(pk=queue.pk)
        list(locked.values_list("pk"))
        pauses = Pause.objects.select_for_update().filter(
            queue=queue, tenant=tenant, partition=partition, operation=None
        )
        if (pause := pauses.first()) is None:
            return False
        locked.update(version=F("version") + 1)
        audit(actor, "resume", "queue", queue.id, tenant_id=_whose(pause), before=_told(pause))
        pause.delete()
    return True


def hold_tenant(actor: Actor, queue: Queue, tenant: Tenant, operation: Operation, reason: str) -> int:
    """Have nothing of the tenant handled there until the operation lets go of it: the queue's version by which that is
    so. Repeatable. NoLongerOurs: nobody would lift what is held for an operation that is over."""
    with transaction.atomic():
        locked = Queue.objects.select_for_update().filter(pk=queue.pk)
        list(locked.values_list("pk"))
        lock_ours(operation)
        told = {"reason": reason[:LONGEST_REASON], "paused_by": actor.name}
        pause, is_new = Pause.objects.get_or_create(queue=queue, tenant=tenant, operation=operation, defaults=told)
        if is_new:
            locked.update(version=F("version") + 1)
            audit(actor, "pause", "queue", queue.id, tenant_id=tenant.pk, after=_told(pause))
        version: int = locked.values_list("version", flat=True).get()
    return version


def let_go_of_tenants(actor: Actor, operation: Operation) -> None:
    """End what `hold_tenant` began for the operation. Repeatable."""
    with transaction.atomic():
        for pause in operation.holds.select_related("queue", "tenant"):
            Queue.objects.filter(pk=pause.queue_id).update(version=F("version") + 1)
            audit(actor, "resume", "queue", pause.queue_id, tenant_id=_whose(pause), before=_told(pause))
            pause.delete()


def _check_target(queue: Queue, tenant: Tenant | None, partition: int | None) -> None:
    if tenant is not None and partition is not None:
        raise InvalidInput("a pause is of a tenant or of a partition, not of both; name one of them")
    if tenant is not None and queue.only_tenant_id not in (None, tenant.id):
        raise InvalidInput(f"queue {queue.name} has no messages of tenant {tenant.name}; leave the tenant out")
    if partition is not None:
        check_partition(queue, partition)


def _check_reason(reason: str) -> str:
    reason = reason.strip()
    if not 1 <= len(reason) <= LONGEST_REASON:
        raise InvalidInput(
            f"say in 1 to {LONGEST_REASON} characters why it is paused: whoever finds it so wants to know; "
            f"{len(reason)} were given"
        )
    return reason


def _whose(pause: Pause) -> UUID | None:
    return pause.tenant_id or pause.queue.only_tenant_id


def _told(pause: Pause) -> dict[str, Any]:
    tenant = str(pause.tenant_id) if pause.tenant_id else None
    return {"tenant": tenant, "partition": pause.partition, "reason": pause.reason, "paused_by": pause.paused_by}
