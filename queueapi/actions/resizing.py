"""Another number of partitions for a queue: new ones, which take over from those it had. And the steps of that, for who
runs the operation: each is one transaction, and repeatable."""

from typing import Any, Final

from django.db import transaction

from queueapi import runtime
from queueapi.actions.actor import Actor, audit
from queueapi.actions.operations import lock_ours, start_operation
from queueapi.actions.queue_checks import check_queue
from queueapi.actions.queue_ends import asker_of, lock_queue
from queueapi.actions.tenant_limits import check_own_queue
from queueapi.actions.topic_checks import check_no_confusion
from queueapi.choices import OperationState
from queueapi.errors import NotChangeable
from queueapi.models import LagCurrent, LetterEpoch, Operation, Pause, Queue, Tenant
from queueapi.routing import tell_producers
from queueapi.selectors.queue_operations import RESIZE
from queueapi.selectors.resize_plans import new_numbers, plan_resize

# Topics are made, producers have heard, former partitions are consumed, consumers have left them, their topics go.
RESIZE_STEPS: Final = 5


def resize_queue(actor: Actor, queue: Queue, *, partitions: int) -> Operation:
    """Let it have so many partitions: its messages go to new ones, which are consumed once all before are done, so that
    each entity's keep their order. One that was left half done goes on. InvalidInput where it cannot have so many;
    NotChangeable says what stands in the way."""
    with transaction.atomic():
        # The tenant first, as whoever isolates it or has it return.
        list(Tenant.objects.select_for_update().filter(pk=queue.tenant_id).values_list("pk"))
        queue = lock_queue(queue)
        plan = plan_resize(queue, partitions)
        if plan.why_not:
            raise NotChangeable(f"queue {queue.name} cannot be resized: {'; '.join(plan.why_not)}")
        numbers = new_numbers(queue, partitions)
        former = queue.former_numbers or queue.routed_numbers
        resized = queue.with_partitions(numbers)
        if plan.created:
            check_queue(resized)
            check_no_confusion(plan.created, runtime.provider().admin().topic_names())
            check_own_queue(resized)
        params = {
            "queue": str(queue.pk),
            "first_partition": numbers.start,
            "partitions": len(numbers),
            "former_first": former.start,
            "former_partitions": len(former),
        }
        summary = f"Resize queue {queue.name} to {partitions:,} partitions"
        operation = start_operation(actor, RESIZE, summary, params, RESIZE_STEPS, tenant_id=queue.only_tenant_id)
        queue.operation = operation
        queue.save(update_fields=["operation"])
        before, after = ({"partitions": len(one), "first_partition": one.start} for one in (former, numbers))
        audit(actor, "resize", "queue", queue.pk, tenant_id=queue.only_tenant_id, before=before, after=after)
    return operation


def begin_resize(operation: Operation) -> bool:
    """Let its messages go to the new partitions, which nobody consumes yet. There is no way back from here. False where
    somebody has cancelled it before."""
    with transaction.atomic():
        queue = _locked(operation)
        if lock_ours(operation) == OperationState.CANCELLING:
            return False
        if queue.routed_numbers == (numbers := resized_numbers(operation)):
            return True
        former = queue.routed_numbers
        queue.letter_partitions = queue.letter_topic_partitions
        queue.former_first, queue.former_partitions = former.start, len(former)
        queue.first_partition, queue.partitions = numbers.start, len(numbers)
        _save(queue, "letter_partitions", "former_first", "former_partitions", "first_partition", "partitions")
        transaction.on_commit(tell_producers)
    return True


def end_former(operation: Operation) -> None:
    """All that it had is done: let the new partitions be consumed, and the former ones be left alone."""
    with transaction.atomic():
        queue = _locked(operation)
        lock_ours(operation)
        if queue.former_numbers:
            queue.former_first = queue.former_partitions = None
            _save(queue, "former_first", "former_partitions")


def consume_former_again(operation: Operation) -> None:
    """Messages have come after all, from somebody who had asked where to before."""
    with transaction.atomic():
        queue, former = _locked(operation), former_numbers(operation)
        lock_ours(operation)
        queue.former_first, queue.former_partitions = former.start, len(former)
        _save(queue, "former_first", "former_partitions")


def forget_former(operation: Operation) -> None:
    """Remove what was said of partitions whose topics are gone."""
    with transaction.atomic():
        queue, numbers = _locked(operation), former_numbers(operation)
        lock_ours(operation)
        gone = queue.with_partitions(numbers)
        LetterEpoch.objects.filter(topic__in=gone.topic_names()).delete()
        LagCurrent.objects.filter(queue=queue, partition__in=list(numbers)).delete()
        for pause in Pause.objects.filter(queue=queue, partition__in=list(numbers)):
            told: dict[str, Any] = {"partition": pause.partition, "reason": pause.reason}
            audit(asker_of(operation), "resume", "queue", queue.pk, tenant_id=queue.only_tenant_id, before=told)
            pause.delete()


def resized_numbers(operation: Operation) -> range:
    """Of the partitions that it is to have."""
    first: int = operation.params["first_partition"]
    return range(first, first + operation.params["partitions"])


def former_numbers(operation: Operation) -> range:
    """Of those that it had."""
    first: int = operation.params["former_first"]
    return range(first, first + operation.params["former_partitions"])


def _locked(operation: Operation) -> Queue:
    """The queue first, then the operation, as everywhere: nobody waits in a circle."""
    return Queue.objects.select_for_update().get(pk=operation.params["queue"])


def _save(queue: Queue, *fields: str) -> None:
    queue.version += 1
    queue.save(update_fields=[*fields, "version"])
