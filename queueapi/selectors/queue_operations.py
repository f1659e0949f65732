"""Operations on queues, by their kind."""

from typing import Final

from queueapi.choices import FINAL_OPERATION_STATES, QueueState
from queueapi.models import Operation, Queue

PROVISION: Final = "provision_queue"
DRAIN: Final = "drain_queue"
DELETE: Final = "delete_queue"


def is_being_provisioned(queue: Queue) -> bool:
    running = Operation.objects.filter(kind=PROVISION, params__queue=str(queue.pk))
    return running.exclude(state__in=FINAL_OPERATION_STATES).exists()


def is_beyond_return(operation: Operation) -> bool:
    """Whether it deletes a queue that nobody consumes any more."""
    return operation.kind == DELETE and Queue.objects.filter(operation=operation, state=QueueState.DELETING).exists()


def operation_under_way(queue: Queue) -> Operation | None:
    """What is being done to the queue now, if anything is."""
    found = queue.operation
    return None if found is None or found.state_choice.is_final else found
