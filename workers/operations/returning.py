"""Letting a tenant's messages go to the shared queues again, so that the order of each entity's messages survives.

First all hosts hold the tenant back in the shared queues. Then its messages go there, while its own queues are consumed
until they are empty; then what was held back is handled, and the own queues are removed. A runner may die anywhere, and
the next one does what is left.
"""

from functools import partial
from typing import Final

from queueapi.actions.isolated_queues import shared_queue
from queueapi.actions.isolation import RETURN_STEPS
from queueapi.actions.isolation_steps import begin_return, end_return, fail_request, give_return_up
from queueapi.actions.pauses import hold_tenant
from queueapi.actions.queue_ends import asker_of
from queueapi.backlog import messages_left
from queueapi.choices import IsolationState, QueueState
from queueapi.models import IsolationRequest, Queue
from queueapi.selectors.isolation import unheld
from queueapi.selectors.queue_plans import why_not_returning
from workers.operations.deletion import take_away
from workers.operations.emptying import and_paused, await_producers
from workers.operations.run import Cancelled, OperationRun
from workers.operations.waiting import trying_again, wait_until_done

# What is left in an own queue while the tenant is held back in the shared one, for as long as that takes to be done.
SMALL_BACKLOG: Final = 1_000

_HEARD = "has heard where the tenant's messages go now"


class ReturnKind:
    """Until the tenant's messages go to the shared queues it can be cancelled, and all is as before."""

    def settle(self, run: OperationRun) -> None:
        """An earlier runner has left nothing undecided."""

    def run(self, run: OperationRun) -> str:
        with trying_again():
            if any(queue.state == QueueState.ACTIVE for queue in _queues(run)):
                _hold(run)
                if not begin_return(run.operation):
                    raise Cancelled
            if _is_retiring(run):
                _hand_over(run)
            _remove(run)
        return "the tenant's messages are handled in the shared queues, and its own queues are gone"

    def give_back(self, run: OperationRun) -> None:
        if all(queue.state == QueueState.ACTIVE for queue in _queues(run)):
            give_return_up(run.operation)
        else:
            fail_request(run.operation, run.why_ended or "it was cancelled")


def _hold(run: OperationRun) -> None:
    """Until the own queues are consumed and have little left, and then until nobody would handle its messages in the
    shared ones."""
    for queue in _queues(run):
        wait_until_done(run, partial(_not_ready, queue))
    for queue in _queues(run):
        shared, why = shared_queue(queue.name), f"its messages return from its own queue {queue.name}"
        version = hold_tenant(asker_of(run.operation), shared, queue.tenant, run.operation, why)
        wait_until_done(run, partial(unheld, shared, version))
    run.note(1)


def _not_ready(queue: Queue) -> str:
    return next(why_not_returning(queue), "") or _too_many(queue)


def _too_many(queue: Queue) -> str:
    left = messages_left(queue)
    if left <= SMALL_BACKLOG:
        return ""
    return f"waits until {SMALL_BACKLOG:,} messages or fewer wait in the tenant's queue {queue.name}; {left:,} do"


def _hand_over(run: OperationRun) -> None:
    await_producers(run, _HEARD, is_stoppable=False)
    run.note(2)
    for queue in _queues(run):
        wait_until_done(run, partial(_any, queue), is_stoppable=False)
    run.note(3)
    run.check_lease()
    end_return(run.operation)
    run.note(RETURN_STEPS)


def _any(queue: Queue) -> str:
    left = messages_left(queue)
    told = f"{left:,} messages are still to be consumed in the tenant's queue {queue.name}"
    return f"{told}{and_paused(queue)}" if left else ""


def _remove(run: OperationRun) -> None:
    while queues := _queues(run):
        if take_away(run, queues[0], lambda _: run.check_held()):
            run.note(run.operation.total - len(queues) + 1)


def _is_retiring(run: OperationRun) -> bool:
    return IsolationRequest.objects.filter(operation=run.operation, state=IsolationState.RETIRING).exists()


def _queues(run: OperationRun) -> list[Queue]:
    rows = Queue.objects.filter(operation=run.operation)
    return list(rows.select_related("tenant__profile", "successor").order_by("name"))
