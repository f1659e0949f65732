"""Operations on queues, by their kind."""

from typing import Final

from queueapi.choices import FINAL_OPERATION_STATES, QueueState
from queueapi.models import Operation, Queue

PROVISION: Final = "provision_queue"
DRAIN: Final = "drain_queue"
DELETE: Final = "delete_queue"
ISOLATE: Final = "isolate_tenant"
RETURN: Final = "return_tenant"

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
}


def is_being_provisioned(queue: Queue) -> bool:
    running = Operation.objects.filter(kind=PROVISION, params__queue=str(queue.pk))
    return running.exclude(state__in=FINAL_OPERATION_STATES).exists()


def why_beyond_return(operation: Operation) -> str:
    """Why it can only go on; empty: it can be taken back."""
    states = _BEYOND_RETURN.get(operation.kind, ())
    is_beyond = bool(states) and Queue.objects.filter(operation=operation, state__in=states).exists()
    return _WHY_BEYOND[operation.kind] if is_beyond else ""


def operation_under_way(queue: Queue) -> Operation | None:
    """What is being done to the queue now, if anything is."""
    found = queue.operation
    return None if found is None or found.state_choice.is_final else found
