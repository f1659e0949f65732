"""The end of queues: drained, taken back, deleted."""

from typing import Any, Final

from django.db import transaction

from queueapi.actions.actor import SYSTEM, Actor, audit
from queueapi.actions.letter_retention import remove_letters_of
from queueapi.actions.operations import cancel_operation, lock_ours, start_operation
from queueapi.choices import OperationState, QueueState
from queueapi.errors import NotRemovable, QueueNotActive
from queueapi.models import LetterEpoch, Operation, Queue, Replay
from queueapi.routing import tell_producers
from queueapi.selectors.queue_operations import DELETE, DRAIN, RETURN, operation_under_way
from queueapi.selectors.queue_plans import QueuePlan, plan_deletion, plan_drain

# Of a deletion, beside its messages: consumers leave, topics go, the row goes.
DELETION_STEPS: Final = 3


def drain_queue(actor: Actor, queue: Queue, *, to: Queue | None = None) -> Operation:
    """Let it take no more messages, and be consumed until it is empty. It stays so until it is activated again, or
    deleted. With `to`, what is published to it goes there meanwhile. NotRemovable says what stands in the way."""
    with transaction.atomic():
        queue = lock_queue(queue)
        plan = plan_drain(queue, lock_queue(to) if to else None)
        _check(plan, "drained")
        operation = start_operation(actor, DRAIN, f"Drain queue {queue.name}", _params(queue, to), plan.messages or 0)
        _change(queue, QueueState.DRAINING, operation, to)
        audit(actor, "drain", "queue", queue.pk, before={"state": QueueState.ACTIVE}, after=_told(plan, to))
        transaction.on_commit(tell_producers)
    return operation


def activate_queue(actor: Actor, queue: Queue) -> Queue:
    """Let a queue that is drained take messages again; what drains or deletes it is cancelled. QueueNotActive where
    it is too late, or not yet time. An active one stays as it is."""
    with transaction.atomic():
        queue = lock_queue(queue)
        if queue.state == QueueState.ACTIVE:
            return queue
        if queue.state != QueueState.DRAINING:
            why = (
                "its topics are not all there yet"
                if queue.state == QueueState.CREATING
                else "nobody consumes it any more"
            )
            raise QueueNotActive(
                f"queue {queue.name} is {queue.state_choice.label.lower()}: {why}; nothing was changed"
            )
        if queue.operation is not None and queue.operation.kind == RETURN:
            raise QueueNotActive(
                f"messages of queue {queue.name} go to the shared queue of that name, in their order; let that end, "
                "and isolate the tenant again"
            )
        under_way = operation_under_way(queue)
        if under_way is not None and under_way.state != OperationState.CANCELLING:
            cancel_operation(actor, under_way.pk)
        audit(actor, "activate", "queue", queue.pk, before={"state": queue.state}, after={"state": QueueState.ACTIVE})
        _change(queue, QueueState.ACTIVE, queue.operation, None)
        transaction.on_commit(tell_producers)
    return queue


def delete_queue(
    actor: Actor, queue: Queue, *, move_to: Queue | None = None, discard_letters: bool = False
) -> Operation:
    """Take it out of service, and remove all of it: once it is empty, or with what is left moved to another queue. Who
    asks again while that is under way gets the same operation. NotRemovable says what stands in the way."""
    with transaction.atomic():
        queue = lock_queue(queue)
        under_way = operation_under_way(queue)
        if under_way is not None and under_way.kind == DELETE:
            return under_way
        # What has been moved to one queue is not followed by the rest to another.
        move_to = queue.successor if queue.state == QueueState.DELETING else move_to
        plan = plan_deletion(queue, lock_queue(move_to) if move_to else None, discard_letters=discard_letters)
        _check(plan, "deleted")
        params = {**_params(queue, move_to), "discard_letters": discard_letters}
        total = (plan.messages or 0) + DELETION_STEPS
        operation = start_operation(actor, DELETE, f"Delete queue {queue.name}", params, total)
        state = QueueState.DELETING if queue.state == QueueState.DELETING else QueueState.DRAINING
        audit(actor, "delete", "queue", queue.pk, before={"state": queue.state}, after=_told(plan, move_to))
        _change(queue, state, operation, move_to)
        transaction.on_commit(tell_producers)
    return operation


def stop_consuming(operation: Operation, queue: Queue) -> bool:
    """There is no way back from here. False where somebody has cancelled it before. NoLongerOurs. For who runs the
    deletion."""
    with transaction.atomic():
        # The queue first, as whoever activates it: nobody waits in a circle.
        found = Queue.objects.select_for_update().filter(pk=queue.pk, operation=operation).first()
        if lock_ours(operation) == OperationState.CANCELLING or found is None:
            return False
        Queue.objects.filter(pk=queue.pk).update(state=QueueState.DELETING)
    return True


def consume_again(operation: Operation, queue: Queue) -> None:
    """Messages have come after all, from somebody who had asked where to before. NoLongerOurs. For who runs the
    deletion."""
    with transaction.atomic():
        rows = Queue.objects.filter(pk=queue.pk, operation=operation, state=QueueState.DELETING)
        list(rows.select_for_update().values_list("pk"))
        lock_ours(operation)
        rows.update(state=QueueState.DRAINING)


def give_queue_back(operation: Operation) -> bool:
    """What drained or deleted it was cancelled, or has failed. False: it is nothing of that operation's any more, or
    beyond return. NoLongerOurs. For who runs it."""
    with transaction.atomic():
        queue = Queue.objects.select_for_update().filter(operation=operation, state=QueueState.DRAINING).first()
        lock_ours(operation)
        if queue is None:
            return False
        _change(queue, QueueState.ACTIVE, operation, None)
        transaction.on_commit(tell_producers)
    return True


def forget_queue(queue: Queue, operation: Operation) -> None:
    """Remove the row, and all that was about it; ledger and audit stay. For who runs the deletion, once everything at
    the provider is gone. Repeatable. NoLongerOurs."""
    while remove_letters_of(queue):
        pass
    with transaction.atomic():
        list(Queue.objects.select_for_update().filter(pk=queue.pk).values_list("pk"))
        lock_ours(operation)
        LetterEpoch.objects.filter(topic__in=queue.topic_names()).delete()
        Replay.objects.filter(target=queue).update(target=None)
        told = {
            "name": queue.name,
            "topic": queue.topic,
            "tenant": str(queue.tenant_id),
            "partitions": queue.partitions,
        }
        audit(asker_of(operation), "remove", "queue", queue.pk, before=told)
        queue.delete()


def asker_of(operation: Operation) -> Actor:
    """Who asked for it."""
    user = operation.created_by
    return Actor(user.get_username(), user) if user else SYSTEM


def lock_queue(queue: Queue) -> Queue:
    """As it is now, and nobody else changes it."""
    found = Queue.objects.select_for_update(of=("self",)).select_related("tenant", "operation", "successor")
    row = found.filter(pk=queue.pk).first()
    if row is None:
        raise QueueNotActive(f"queue {queue.name} has just been deleted")
    return row


def _check(plan: QueuePlan, done: str) -> None:
    if plan.why_not:
        reasons = "; ".join(plan.why_not)
        raise NotRemovable(f"queue {plan.queue.name} cannot be {done}: {reasons}", reasons=plan.why_not)


def _change(queue: Queue, state: QueueState, operation: Operation | None, successor: Queue | None) -> None:
    queue.state, queue.operation, queue.successor = state, operation, successor
    queue.save(update_fields=["state", "operation", "successor"])


def _params(queue: Queue, successor: Queue | None) -> dict[str, Any]:
    return {"queue": str(queue.pk), "successor": str(successor.pk) if successor else None}


def _told(plan: QueuePlan, successor: Queue | None) -> dict[str, Any]:
    return {"messages": plan.messages, "letters": plan.letters, "successor": successor.name if successor else None}
