"""Draining a queue: nobody sends to it any more, and what it has is consumed."""

from queueapi.actions.queue_ends import give_queue_back
from queueapi.models import Queue
from workers.operations.emptying import await_empty, await_producers
from workers.operations.run import Cancelled, OperationRun
from workers.operations.waiting import trying_again


class DrainKind:
    """It only looks on: the queue's row is the truth, and hosts consume by it."""

    def settle(self, run: OperationRun) -> None:
        """An earlier runner has left nothing behind."""

    def run(self, run: OperationRun) -> str:
        queue = Queue.objects.filter(operation=run.operation).first()
        if queue is None:
            # Somebody deletes it meanwhile.
            raise Cancelled
        with trying_again():
            await_producers(run, "has heard that the queue takes no more messages")
            await_empty(run, queue)
        return f"queue {queue.name} is empty, and takes no messages until it is activated"

    def give_back(self, run: OperationRun) -> None:
        give_queue_back(run.operation)
