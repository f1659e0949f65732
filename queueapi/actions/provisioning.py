"""What a queue needs at the provider. Its row comes first; an operation does the rest, as often as it takes.

Whoever asked for it tries it at once, so that nearly always all is there when they hear of it. Where that fails, or
they die of it, a worker goes on.
"""

import logging
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from django.db import transaction

from queueapi import runtime
from queueapi.actions.actor import Actor
from queueapi.actions.operations import (
    NoLongerOurs,
    claim_operation,
    finish_operation,
    log_operation,
    record_operation,
    record_progress,
    wait_operation,
)
from queueapi.choices import OperationState, QueueState
from queueapi.identity import service_id
from queueapi.models import Operation, Queue
from queueapi.queue_topics import message_specs, topics_of
from queueapi.routing import tell_producers
from queueapi.selectors.operation_words import waits_because
from queueapi.selectors.queue_operations import PROVISION
from queuecore.errors import QueueError
from queuecore.metrics.reporting import create_metrics_topic

logger = logging.getLogger(__name__)

TRY_AGAIN: Final = timedelta(seconds=5)

_STEPS: Final = 3


def start_provisioning(actor: Actor, queue: Queue, why: str) -> Operation:
    """Record that the provider is to have what the row says; tried once this transaction is committed."""
    operation = record_operation(actor, PROVISION, f"{why} {queue.name}", {"queue": str(queue.pk)}, _STEPS)
    queue.operation = operation
    queue.save(update_fields=["operation"])
    transaction.on_commit(lambda: _try_at_once(operation.pk))
    return operation


def provision(operation: Operation) -> str:
    """Do it, for who has claimed it; what to log at the end. Repeatable. QueueError, NoLongerOurs."""
    queue = Queue.objects.filter(pk=operation.params["queue"]).first()
    if queue is None or queue.state == QueueState.DELETING:
        return "the queue is being deleted, or is gone: nothing is left to do"
    provision_queue(queue)
    _note(operation, 1)
    runtime.provider().admin().alter_topics(message_specs(queue))
    with transaction.atomic():
        _note(operation, 2)
        Queue.objects.filter(pk=queue.pk, state=QueueState.CREATING).update(state=QueueState.ACTIVE)
    # After its topics are there: nobody sends where nothing is.
    tell_producers()
    _note(operation, _STEPS)
    return f"the topics of queue {queue.name} are as its configuration says"


def provision_queue(queue: Queue) -> None:
    """Create what is missing at the provider: the topics of its messages, letters and state. Repeatable."""
    runtime.provider().admin().create_topics(topics_of(queue))


def provision_metrics() -> None:
    """Create the topic the runtime reports to. Repeatable."""
    create_metrics_topic(runtime.provider().admin())


def _try_at_once(operation_id: UUID) -> None:
    """What fails here is tried again by a worker, unless it would fail there as well."""
    operation = claim_operation(operation_id, f"{service_id()}/{uuid4().hex[:8]}")
    if operation is None:
        return
    try:
        message = provision(operation)
    except NoLongerOurs:
        logger.warning("operation %s was taken over by another runner", operation_id)
    except QueueError as error:
        _put_off(operation, error)
    else:
        with transaction.atomic():
            if finish_operation(operation, OperationState.SUCCEEDED):
                log_operation(operation, message)


def _put_off(operation: Operation, error: QueueError) -> None:
    with transaction.atomic():
        if not error.retryable:
            finish_operation(operation, OperationState.FAILED, error=error.message)
            log_operation(operation, error.message)
        elif wait_operation(operation, TRY_AGAIN):
            log_operation(operation, waits_because(error.message))


def _note(operation: Operation, done: int) -> None:
    if not record_progress(operation, done):
        raise NoLongerOurs
    operation.done = done
