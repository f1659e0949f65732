"""The steps of an isolation and of its end, for who runs the operation. Each is one transaction, and repeatable."""

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from queueapi.actions.actor import Actor, audit
from queueapi.actions.isolated_queues import shared_queue
from queueapi.actions.operations import lock_ours
from queueapi.actions.pauses import let_go_of_tenants, pause_queue
from queueapi.actions.queue_ends import asker_of
from queueapi.choices import IsolationState, OperationState, QueueState
from queueapi.models import IsolationRequest, Operation, Pause, Queue
from queueapi.routing import tell_producers
from queueapi.selectors.isolation import shared_twin

_STEP: Final = {
    IsolationState.PROVISIONING: (IsolationState.APPROVED,),
    IsolationState.HANDING_OVER: (IsolationState.PROVISIONING,),
    IsolationState.ACTIVE: (IsolationState.HANDING_OVER, IsolationState.RETIRING),
    IsolationState.RETIRED: (IsolationState.RETIRING,),
    IsolationState.FAILED: (
        IsolationState.APPROVED,
        IsolationState.PROVISIONING,
        IsolationState.HANDING_OVER,
        IsolationState.RETIRING,
    ),
}


def begin_provisioning(operation: Operation) -> None:
    """Its topics are created."""
    _become(operation, IsolationState.PROVISIONING)


def begin_handover(operation: Operation) -> bool:
    """Let the tenant's messages go to its own queues, which nobody consumes yet. There is no way back from here. False
    where somebody has cancelled it before."""
    with transaction.atomic():
        if not _may_go_on(operation):
            return False
        creating = Queue.objects.filter(operation=operation, state=QueueState.CREATING)
        creating.update(state=QueueState.HANDING_OVER)
        _become(operation, IsolationState.HANDING_OVER)
        transaction.on_commit(tell_producers)
    return True


def record_cut(operation: Operation, cut: Mapping[str, Mapping[int, int]]) -> None:
    """Where shared partitions ended when nobody sent messages of the tenant there any more. The first one stays: it is
    right, and what is behind a later one is more than must be waited for."""
    offsets = {queue: sorted(ends.items()) for queue, ends in cut.items()}
    requests = IsolationRequest.objects.filter(operation=operation, state=IsolationState.HANDING_OVER, cut={})
    requests.update(cut=offsets, version=F("version") + 1)


def end_handover(operation: Operation) -> None:
    """Let its queues be consumed."""
    with transaction.atomic():
        for queue in Queue.objects.filter(operation=operation, state=QueueState.HANDING_OVER).select_related("tenant"):
            _keep_paused(operation, queue)
            queue.state = QueueState.ACTIVE
            queue.save(update_fields=["state"])
        _become(operation, IsolationState.ACTIVE)


def begin_return(operation: Operation) -> bool:
    """Let the tenant's messages go to the shared queues. There is no way back from here. False where somebody has
    cancelled it before."""
    with transaction.atomic():
        if not _may_go_on(operation):
            return False
        for queue in Queue.objects.filter(operation=operation, state=QueueState.ACTIVE):
            queue.state, queue.successor = QueueState.DRAINING, shared_queue(queue.name)
            queue.save(update_fields=["state", "successor"])
        transaction.on_commit(tell_producers)
    return True


def end_return(operation: Operation) -> None:
    """What the tenant has in the shared queues is handled from now on: nothing before it is left."""
    with transaction.atomic():
        let_go_of_tenants(asker_of(operation), operation)
        _become(operation, IsolationState.RETIRED)


def give_return_up(operation: Operation) -> None:
    """It was cancelled, or has failed, before the tenant's messages went elsewhere: all is as before."""
    with transaction.atomic():
        let_go_of_tenants(asker_of(operation), operation)
        _become(operation, IsolationState.ACTIVE)


def fail_request(operation: Operation, why: str) -> None:
    """It is to be looked at by a person, who can have it tried again."""
    _become(operation, IsolationState.FAILED, why)


def _become(operation: Operation, state: IsolationState, error: str = "") -> None:
    """Nothing changes where that step was made before. NoLongerOurs."""
    with transaction.atomic():
        lock_ours(operation)
        rows = IsolationRequest.objects.select_for_update().filter(operation=operation, state__in=_STEP[state])
        for request in rows:
            before, request.state, request.error = request.state, state, error
            # What has returned may be isolated anew, and is cut anew.
            request.cut = {} if state == IsolationState.RETIRED else request.cut
            request.version += 1
            request.save(update_fields=["state", "error", "cut", "version"])
            # Why it failed is in the row and its operation: a tenant's people read this.
            actor: Actor = asker_of(operation)
            told: dict[str, dict[str, Any]] = {"before": {"state": before}, "after": {"state": state}}
            audit(actor, "step", "isolation_request", request.pk, tenant_id=request.tenant_id, **told)


def _keep_paused(operation: Operation, queue: Queue) -> None:
    """Whoever has paused the tenant in the shared queue means its messages, wherever they are."""
    if (twin := shared_twin(queue)) is not None:
        for pause in Pause.objects.filter(queue=twin, tenant=queue.tenant, operation=None):
            pause_queue(asker_of(operation), queue, reason=pause.reason)


def _may_go_on(operation: Operation) -> bool:
    """Its queues and the operation itself are locked, in this order as everywhere."""
    list(Queue.objects.select_for_update().filter(operation=operation).values_list("pk"))
    return lock_ours(operation) != OperationState.CANCELLING
