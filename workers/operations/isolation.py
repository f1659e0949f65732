"""Giving a tenant queues of its own, so that the order of each entity's messages survives.

The tenant's messages go to the new queues at once. Nobody consumes these until every producer goes by that, and all
that the tenant has in the shared queues is done: what is there by then is before the cut. A runner may die anywhere,
and the next one does what is left.
"""

from queueapi import runtime
from queueapi.actions.isolated_queues import remove_isolated_queues
from queueapi.actions.isolation_steps import (
    begin_handover,
    begin_provisioning,
    end_handover,
    fail_request,
    record_cut,
)
from queueapi.actions.provisioning import provision_queue
from queueapi.actions.queue_ends import asker_of
from queueapi.backlog import end_offsets, messages_before
from queueapi.choices import QueueState
from queueapi.models import IsolationRequest, Queue
from queueapi.queue_topics import message_specs
from queueapi.selectors.isolation import shared_twin
from workers.operations.emptying import and_paused, await_producers
from workers.operations.run import Cancelled, OperationRun
from workers.operations.waiting import trying_again, wait_until_done

_HEARD = "has heard where the tenant's messages go now"


class IsolationKind:
    """Until the tenant's messages go to its own queues it can be cancelled, and these are removed again."""

    def settle(self, run: OperationRun) -> None:
        """An earlier runner has left nothing undecided."""

    def run(self, run: OperationRun) -> str:
        with trying_again():
            if any(queue.state == QueueState.CREATING for queue in _queues(run)):
                _provision(run)
                if not begin_handover(run.operation):
                    raise Cancelled
            _hand_over(run)
        return "the tenant's own queues are consumed, and its messages go there alone"

    def give_back(self, run: OperationRun) -> None:
        """What has messages stays as it is, for who tries it again."""
        with trying_again():
            remove_isolated_queues(asker_of(run.operation), run.operation)
        fail_request(run.operation, run.why_ended or "it was cancelled")


def _provision(run: OperationRun) -> None:
    begin_provisioning(run.operation)
    for queue in _queues(run):
        run.check()
        provision_queue(queue)
        runtime.provider().admin().alter_topics(message_specs(queue))
    run.note(1)


def _hand_over(run: OperationRun) -> None:
    await_producers(run, _HEARD, is_stoppable=False)
    run.note(2)
    queues = _queues(run)
    # One that somebody has deleted meanwhile has nothing left.
    shared = {str(queue.pk): twin for queue in queues if (twin := shared_twin(queue)) is not None}
    record_cut(run.operation, {own: end_offsets(twin) for own, twin in shared.items()})
    run.note(3)
    cut = IsolationRequest.objects.values_list("cut", flat=True).get(operation=run.operation)
    for own, twin in shared.items():
        _await_cut(run, twin, dict(cut.get(own, [])))
    run.note(4)
    run.check_lease()
    end_handover(run.operation)
    run.note(run.operation.total)


def _await_cut(run: OperationRun, shared: Queue, cut: dict[int, int]) -> None:
    def why_not_yet() -> str:
        left = messages_before(shared, cut)
        told = f"{left:,} messages are still to be consumed in queue {shared.name} that may be before the tenant's own"
        return f"{told}{and_paused(shared)}" if left else ""

    wait_until_done(run, why_not_yet, is_stoppable=False)


def _queues(run: OperationRun) -> list[Queue]:
    return list(Queue.objects.filter(operation=run.operation).select_related("tenant").order_by("name"))
