"""Operations on queues, by their kind."""

from typing import Final

from queueapi.choices import FINAL_OPERATION_STATES, QueueState
from queueapi.models import Operation, Queue

PROVISION: Final = "provision_queue"
DRAIN: Final = "drain_queue"
DELETE: Final = "delete_queue"
ISOLATE: Final = "isolate_tenant"
RETURN: Final = "return_tenant"
RESIZE: Final = "resize_queue"

# Of a tenant's queues: their rows are what the operation goes by.
HANDOVERS: Final = (ISOLATE, RETURN)

# From where each goes on to its end, whatever happens: a state of its queues.
_BEYOND_RETURN: Final = {
    DELETE: (QueueState.DELETING,),
    ISOLATE: (QueueState.HANDING_OVER,),
    RETURN: (QueueState.DRAINING, QueueState.DELETING),
}
_WHY_BEYOND: Final = {
    DELETE: "the queue's consumers have left and its topics go",
    ISOLATE: "the tenant's messages go to its own queues already; let it end, and return them then",
    RETURN: "the tenant's messages go to the shared queues already",
    RESIZE: "the queue's messages go to its new partitions already; let it end, and resize it again then",
}


def is_being_provisioned(queue: Queue) -> bool:
    running = Operation.objects.filter(kind=PROVISION, params__queue=str(queue.pk))
    return running.exclude(state__in=FINAL_OPERATION_STATES).exists()


def why_beyond_return(operation: Operation) -> str:
    """Why it can only go on; empty: it can be taken back."""
    queues = Queue.objects.filter(operation=operation)
    if operation.kind == RESIZE:
        is_beyond = queues.filter(first_partition=operation.params["first_partition"]).exists()
    else:
        states = _BEYOND_RETURN.get(operation.kind, ())
        is_beyond = bool(states) and queues.filter(state__in=states).exists()
    return _WHY_BEYOND[operation.kind] if is_beyond else ""


def is_being_handed_over(queue: Queue) -> bool:
    """Whether its tenant's messages are on their way into it, or out of it."""
    under_way = operation_under_way(queue)
    return under_way is not None and under_way.kind in HANDOVERS


def is_being_resized(queue: Queue) -> bool:
    """Whether it gets new partitions, or has former ones left by a resize that has failed."""
    under_way = operation_under_way(queue)
    return bool(queue.former_numbers) or (under_way is not None and under_way.kind == RESIZE)


def operation_under_way(queue: Queue) -> Operation | None:
    """What is being done to the queue now, if anything is."""
    found = queue.operation
    return None if found is None or found.state_choice.is_final else found
