"""The life of an operation: start, claim, go on, wait, end. The rules of who may run it are here alone."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from queueapi.actions.actor import Actor, audit
from queueapi.choices import PAUSABLE_OPERATION_STATES, OperationState
from queueapi.errors import AlreadyFinal, InvalidInput, NotAllowed
from queueapi.models import Operation, OperationLogEntry
from queueapi.selectors.queue_operations import HANDOVERS, why_beyond_return
from queueapi.selectors.rebalances import REBALANCE
from queueapi.wakeups import wake_operation

LEASE = timedelta(seconds=30)


class NoLongerOurs(Exception):
    """Another runner has taken the operation over, or it is over."""


WAKE_AGAIN_AFTER = timedelta(seconds=15)


def start_operation(
    actor: Actor, kind: str, summary: str, params: dict[str, Any], total: int, *, tenant_id: UUID | None = None
) -> Operation:
    """Record the operation and wake a worker once the caller's transaction is committed."""
    with transaction.atomic():
        operation = record_operation(actor, kind, summary, params, total, tenant_id=tenant_id)
        wake_operation(operation.id, operation.kind)
    return operation


def record_operation(
    actor: Actor, kind: str, summary: str, params: dict[str, Any], total: int, *, tenant_id: UUID | None = None
) -> Operation:
    """For who runs it at once: a worker is woken only where they are not done with it in time. `tenant_id` is whose it
    is; left out: that of who starts it."""
    with transaction.atomic():
        operation = Operation.objects.create(
            kind=kind,
            summary=summary[:200],
            params=params,
            total=total,
            created_by=actor.user,
            tenant_id=tenant_id or actor.tenant_id,
            woken_at=timezone.now(),
        )
        told = {"kind": kind, "params": params}
        audit(actor, "start_operation", "operation", operation.id, tenant_id=operation.tenant_id, after=told)
    return operation


def claim_operation(operation_id: UUID, owner: str) -> Operation | None:
    """Take the operation for `owner`, or None where it is over, unknown, waiting, or somebody else's."""
    now = timezone.now()
    with transaction.atomic():
        operation = Operation.objects.select_for_update().filter(_is_free(), _is_due(), id=operation_id).first()
        if operation is None or operation.state_choice.is_final:
            return None
        if operation.lease_owner:
            log_operation(operation, f"its runner is gone; taken up again after {operation.done} of {operation.total}")
        operation.lease_owner, operation.lease_expires_at = owner, now + LEASE
        operation.attempts += 1
        operation.started_at = operation.started_at or now
        operation.due_at = None
        if operation.state == OperationState.PENDING:
            operation.state = OperationState.RUNNING
        operation.save()
    return operation


def extend_lease(operation: Operation) -> bool:
    """Keep it for its owner. False: it is no longer this owner's, who must stop at once."""
    held = Operation.objects.filter(id=operation.id, lease_owner=operation.lease_owner)
    return held.update(lease_expires_at=timezone.now() + LEASE) == 1


def lock_ours(operation: Operation) -> OperationState:
    """Its state, which nobody changes until the end of the transaction. NoLongerOurs."""
    ours = Operation.objects.select_for_update().filter(id=operation.id, lease_owner=operation.lease_owner)
    found = ours.values_list("state", flat=True).first()
    if found is None or OperationState(found).is_final:
        raise NoLongerOurs
    return OperationState(found)


def record_progress(operation: Operation, done: int) -> bool:
    """Say how far it is. False: it is no longer this owner's, who must stop at once."""
    held = Operation.objects.filter(id=operation.id, lease_owner=operation.lease_owner)
    return held.update(done=done, lease_expires_at=timezone.now() + LEASE) == 1


def wait_operation(operation: Operation, wait: timedelta | None = None) -> bool:
    """Let go of it: somebody takes it up after that time, or when it is resumed. False: it is no longer this owner's,
    and nothing was changed."""
    due_at = None if wait is None else timezone.now() + wait
    held = Operation.objects.filter(id=operation.id, lease_owner=operation.lease_owner)
    return held.update(lease_owner="", lease_expires_at=None, due_at=due_at, woken_at=None) == 1


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
        operation = _unfinished(operation_id, "cancel")
        _check_theirs(actor, operation)
        if why := why_beyond_return(operation):
            raise AlreadyFinal(f"{why}; that cannot be taken back any more")
        before = operation.state
        operation.state = OperationState.CANCELLING
        operation.due_at = None
        operation.save(update_fields=["state", "due_at"])
        _audit(actor, "cancel_operation", operation, before={"state": before}, after={"state": operation.state})
        wake_operation(operation.id, operation.kind)
    return operation


def pause_operation(actor: Actor, operation_id: UUID) -> Operation:
    """Ask it to stop at its next step, and to wait until it is resumed. AlreadyFinal where it ends anyway;
    InvalidInput for one that cannot wait."""
    with transaction.atomic():
        operation = _unfinished(operation_id, "pause")
        if operation.state == OperationState.CANCELLING:
            raise AlreadyFinal("this operation is being cancelled; there is nothing to pause")
        _check_theirs(actor, operation)
        if operation.kind in HANDOVERS and (why := why_beyond_return(operation)):
            raise InvalidInput(f"{why}; it cannot wait there")
        if operation.kind == REBALANCE:
            # It is only followed here.
            raise InvalidInput("a rebalance cannot be paused, the cluster goes on with it; cancel it instead")
        if operation.paused_at is None:
            operation.paused_at = timezone.now()
            operation.save(update_fields=["paused_at"])
            log_operation(operation, f"paused by {actor.name}")
            _audit(actor, "pause_operation", operation, before={"paused": False}, after={"paused": True})
    return operation


def resume_operation(actor: Actor, operation_id: UUID) -> Operation:
    """Let it go on where it stopped. AlreadyFinal if over."""
    with transaction.atomic():
        operation = _unfinished(operation_id, "resume")
        if operation.paused_at is not None:
            operation.paused_at = None
            operation.save(update_fields=["paused_at"])
            log_operation(operation, f"resumed by {actor.name}")
            _audit(actor, "resume_operation", operation, before={"paused": True}, after={"paused": False})
            wake_operation(operation.id, operation.kind)
    return operation


def wake_stale_operations() -> int:
    """Send wake-ups for operations that are due, and whose task was lost or whose runner died. How many there were."""
    now = timezone.now()
    unfinished = [*PAUSABLE_OPERATION_STATES, OperationState.CANCELLING]
    long_ago = Q(woken_at__isnull=True) | Q(woken_at__lt=now - WAKE_AGAIN_AFTER)
    stale = Operation.objects.filter(_is_free(), _is_due(), long_ago, state__in=unfinished)
    kinds = dict(stale.values_list("id", "kind"))
    Operation.objects.filter(id__in=kinds).update(woken_at=now)
    for operation_id, kind in kinds.items():
        wake_operation(operation_id, kind)
    return len(kinds)


def _audit(actor: Actor, action: str, operation: Operation, before: dict[str, Any], after: dict[str, Any]) -> None:
    audit(actor, action, "operation", operation.id, tenant_id=operation.tenant_id, before=before, after=after)


def _check_theirs(actor: Actor, operation: Operation) -> None:
    """NotAllowed for a tenant's people, who ask for isolation and do not decide on it."""
    if actor.tenant_id is not None and operation.kind in HANDOVERS:
        raise NotAllowed("administrators decide on isolation; tell them by a comment on the request")


def _unfinished(operation_id: UUID, verb: str) -> Operation:
    """The operation, locked. AlreadyFinal if over."""
    operation = Operation.objects.select_for_update().get(id=operation_id)
    if operation.state_choice.is_final:
        how = operation.state_choice.label.lower()
        raise AlreadyFinal(f"this operation has already {how}; there is nothing to {verb}")
    return operation


def _is_free() -> Q:
    return Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lt=timezone.now())


def _is_due() -> Q:
    """Whoever asks for its end is not kept waiting."""
    waits = Q(paused_at__isnull=False) | Q(due_at__gt=timezone.now())
    return ~waits | Q(state=OperationState.CANCELLING)
