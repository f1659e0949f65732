"""Another number of partitions for a queue, so that the order of each entity's messages survives.

Its messages go to new partitions at once. Nobody consumes these until every producer goes by that, and all that the
former ones have is done; then the former ones go. A runner may die anywhere, and the next one does what is left.
"""

from typing import Final

from queueapi import runtime
from queueapi.actions.resizing import (
    begin_resize,
    consume_former_again,
    end_former,
    forget_former,
    former_numbers,
    resized_numbers,
)
from queueapi.backlog import messages_left
from queueapi.cluster.models import Partition
from queueapi.cluster.rows import reaching
from queueapi.models import Queue
from queueapi.queue_topics import message_specs
from queueapi.selectors.queue_plans import why_replayed
from workers.operations.emptying import and_paused, await_producers
from workers.operations.run import Cancelled, OperationRun
from workers.operations.waiting import trying_again, wait_until_done

_HEARD: Final = "has heard where the queue's messages go now"


class ResizeKind:
    """Until messages go to the new partitions it can be cancelled, and these are removed again."""

    def settle(self, run: OperationRun) -> None:
        """An earlier runner has left nothing undecided."""

    def run(self, run: OperationRun) -> str:
        with trying_again():
            if _queue(run).routed_numbers != resized_numbers(run.operation):
                _provision(run)
                if not begin_resize(run.operation):
                    raise Cancelled
            _hand_over(run)
            _remove_former(run)
        return f"the queue has {len(resized_numbers(run.operation)):,} partitions, and its former ones are gone"

    def give_back(self, run: OperationRun) -> None:
        """What has messages stays as it is, for who tries it again."""
        queue, numbers = _queue(run), resized_numbers(run.operation)
        if queue.routed_numbers != numbers:
            with trying_again():
                runtime.provider().admin().delete_topics(sorted(queue.with_partitions(numbers).topic_names()))


def _provision(run: OperationRun) -> None:
    run.check()
    admin, specs = (
        runtime.provider().admin(),
        message_specs(_queue(run).with_partitions(resized_numbers(run.operation))),
    )
    admin.create_topics(specs)
    admin.alter_topics(specs)
    run.note(1)


def _hand_over(run: OperationRun) -> None:
    """Until all that was sent before is done. What comes late all the same is handled before anything is removed."""
    await_producers(run, _HEARD, is_stoppable=False)
    run.note(2)
    former = _former(run)
    while True:
        _await_consumed(run, former)
        run.note(3)
        run.check_lease()
        end_former(run.operation)
        _await_released(run, former)
        if not messages_left(former):
            break
        consume_former_again(run.operation)
    run.note(4)


def _await_consumed(run: OperationRun, former: Queue) -> None:
    def why_not_yet() -> str:
        left = messages_left(former)
        return (
            f"{left:,} messages are still to be consumed in the former partitions{and_paused(former)}" if left else ""
        )

    wait_until_done(run, why_not_yet, is_stoppable=False)


def _await_released(run: OperationRun, former: Queue) -> None:
    """Until no host has any of them: nothing must be handled while their topics go."""

    def why_not_yet() -> str:
        with reaching():
            held = Partition.objects.filter(name__in=former.topic_names()).count()
        return f"waits until hosts have released {held:,} former partitions" if held else ""

    wait_until_done(run, why_not_yet, is_stoppable=False)


def _remove_former(run: OperationRun) -> None:
    """A replay that began before may still send to them."""
    former = _former(run)
    wait_until_done(run, lambda: why_replayed(former), is_stoppable=False)
    run.check_lease()
    runtime.provider().admin().delete_topics(sorted(former.topic_names()))
    forget_former(run.operation)
    run.note(run.operation.total)


def _queue(run: OperationRun) -> Queue:
    return Queue.objects.select_related("tenant").get(pk=run.operation.params["queue"])


def _former(run: OperationRun) -> Queue:
    """The queue as it was: with the partitions that it had."""
    return _queue(run).with_partitions(former_numbers(run.operation))
