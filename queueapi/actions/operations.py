"""The life of an operation: start, claim, go on, end. The rules of who may run it are here alone."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from queueapi.actions.actor import Actor, audit
from queueapi.choices import OperationState
from queueapi.errors import AlreadyFinal
from queueapi.models import Operation, OperationLogEntry
from queueapi.wakeups import wake_operation

LEASE = timedelta(seconds=30)
WAKE_AGAIN_AFTER = timedelta(seconds=15)


def start_operation(actor: Actor, kind: str, summary: str, params: dict[str, Any], total: int) -> Operation:
    """Record the operation and wake a worker once the caller's transaction is committed."""
    with transaction.atomic():
        operation = Operation.objects.create(
            kind=kind, summary=summary, params=params, total=total, created_by=actor.user, woken_at=timezone.now()
        )
        audit(actor, "start_operation", "operation", operation.id, after={"kind": kind, "params": params})
        wake_operation(operation.id)
    return operation


def claim_operation(operation_id: UUID, owner: str) -> Operation | None:
    """Take the operation for `owner`, or None where it is over, unknown, or somebody else's."""
    now = timezone.now()
    free = Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lt=now)
    with transaction.atomic():
        operation = Operation.objects.select_for_update().filter(free, id=operation_id).first()
        if operation is None or operation.state_choice.is_final:
            return None
        operation.lease_owner, operation.lease_expires_at = owner, now + LEASE
        operation.attempts += 1
        operation.started_at = operation.started_at or now
        if operation.state == OperationState.PENDING:
            operation.state = OperationState.RUNNING
        operation.save()
    return operation


def extend_lease(operation: Operation, done: int) -> bool:
    """Record progress. False: the operation is no longer this owner's, who must stop at once."""
    updated = Operation.objects.filter(id=operation.id, lease_owner=operation.lease_owner).update(
        done=done, lease_expires_at=timezone.now() + LEASE
    )
    return updated == 1


def is_cancelling(operation: Operation) -> bool:
    return Operation.objects.filter(id=operation.id, state=OperationState.CANCELLING).exists()


def log_operation(operation: Operation, text: str) -> None:
    OperationLogEntry.objects.create(operation=operation, text=text)


def finish_operation(operation: Operation, state: OperationState, *, error: str = "", **result: Any) -> bool:
    """End it for good. False: it is no longer this owner's, and nothing was changed."""
    updated = Operation.objects.filter(id=operation.id, lease_owner=operation.lease_owner).update(
        state=state, error=error, result=result, finished_at=timezone.now(), lease_owner="", lease_expires_at=None
    )
    return updated == 1


def cancel_operation(actor: Actor, operation_id: UUID) -> Operation:
    """Ask for the end. What runs stops at its next step; what never ran ends at once. AlreadyFinal if over."""
    with transaction.atomic():
        operation = Operation.objects.select_for_update().get(id=operation_id)
        before = operation.state_choice
        if before.is_final:
            raise AlreadyFinal(f"this operation has already {before.label.lower()}; there is nothing to cancel")
        operation.state = OperationState.CANCELLING
        operation.save(update_fields=["state"])
        audit(actor, "cancel_operation", "operation", operation.id, before={"state": before.value})
        wake_operation(operation.id)
    return operation


def wake_stale_operations() -> int:
    """Send wake-ups for operations whose task was lost or whose runner died. How many there were."""
    now = timezone.now()
    unfinished = [OperationState.PENDING, OperationState.RUNNING, OperationState.CANCELLING]
    unleased = Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lt=now)
    long_ago = Q(woken_at__isnull=True) | Q(woken_at__lt=now - WAKE_AGAIN_AFTER)
    stale = Operation.objects.filter(unleased, long_ago, state__in=unfinished)
    ids = list(stale.values_list("id", flat=True))
    Operation.objects.filter(id__in=ids).update(woken_at=now)
    for operation_id in ids:
        wake_operation(operation_id)
    return len(ids)
