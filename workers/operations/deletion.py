"""Deleting a queue, step by step. Each can be done again: a runner may die anywhere, and the next does what is left."""

from collections.abc import Callable
from functools import partial
from typing import Final

from queueapi import runtime
from queueapi.actions.actor import Actor
from queueapi.actions.dead_letters import MAX_AT_ONCE, discard_letters
from queueapi.actions.queue_ends import (
    DELETION_STEPS,
    asker_of,
    consume_again,
    forget_queue,
    give_queue_back,
    stop_consuming,
)
from queueapi.backlog import messages_left
from queueapi.choices import LetterState, QueueState
from queueapi.models import DeadLetter, Queue
from queueapi.plans import all_groups
from queueapi.queue_topics import topics_to_remove
from queueapi.selectors.queue_plans import undecided_letters, why_replayed
from queuecore.groups.lag import read_standings
from queuecore.topics import ProviderPartition
from workers.letters import INDEX_GROUP
from workers.operations.emptying import await_empty, await_producers
from workers.operations.moving import QueueMover
from workers.operations.run import Cancelled, OperationRun
from workers.operations.waiting import trying_again, wait_until_done

_DISCARDED: Final = "its queue is deleted"
_HEARD: Final = "has heard that the queue takes no more messages"


class DeletionKind:
    """Until consumers are told to leave it can be cancelled, and the queue is active again."""

    def settle(self, run: OperationRun) -> None:
        """What an earlier runner left open is ended by whoever opens the same transactions again."""

    def run(self, run: OperationRun) -> str:
        with trying_again():
            while (queue := _queue(run)) is not None:
                if queue.state == QueueState.DRAINING:
                    await_producers(run, _HEARD)
                    if queue.successor is None:
                        await_empty(run, queue, DELETION_STEPS)
                if take_away(run, queue, partial(_step, run)):
                    break
        return "the queue is gone, with its topics, its offsets and its letters"

    def give_back(self, run: OperationRun) -> None:
        give_queue_back(run.operation)


def take_away(run: OperationRun, queue: Queue, step: Callable[[int], None]) -> bool:
    """All of a queue that nobody sends to any more: what is left is moved to its successor, if it has one. False where
    messages have come after all, or a replay sends some: they are consumed first. `step` is told how far it is."""
    if queue.state == QueueState.DRAINING:
        _decide_letters(run, queue, is_stoppable=True)
        if not stop_consuming(run.operation, queue):
            raise Cancelled
        queue.refresh_from_db()
    _await_consumers(run, queue)
    # No replay begins from here on; one that was quicker has its letters handled.
    if why_replayed(queue) or (queue.successor is None and messages_left(queue)):
        consume_again(run.operation, queue)
        return False
    if queue.successor is not None:
        QueueMover(run, queue, queue.successor, DELETION_STEPS).move()
    _decide_letters(run, queue, is_stoppable=False)
    step(1)
    runtime.provider().admin().delete_topics(topics_to_remove(queue))
    step(2)
    forget_queue(queue, run.operation)
    step(DELETION_STEPS)
    return True


def _queue(run: OperationRun) -> Queue | None:
    return Queue.objects.select_related("successor", "tenant").filter(operation=run.operation).first()


def _step(run: OperationRun, number: int) -> None:
    """LeaseLost where another runner goes on."""
    run.check_lease()
    run.note(run.operation.total - DELETION_STEPS + number)


def _await_consumers(run: OperationRun, queue: Queue) -> None:
    """Until no host reads it any more: nothing must be handled while its topics go."""
    names = all_groups(queue)

    def why_not_yet() -> str:
        groups = runtime.provider().admin().groups()
        members = sum(len(groups[name].members) for name in names if name in groups)
        return f"waits until {members} consumers have left it" if members else ""

    wait_until_done(run, why_not_yet, is_stoppable=False)


def _decide_letters(run: OperationRun, queue: Queue, *, is_stoppable: bool) -> None:
    """Until all letters are in the index, somebody has decided on each, and no replay brings others'."""
    if run.operation.params.get("discard_letters"):
        wait_until_done(run, lambda: _not_indexed(queue), is_stoppable=is_stoppable)
        _discard(asker_of(run.operation), queue)
    wait_until_done(
        run, lambda: _not_indexed(queue) or _undecided(queue) or why_replayed(queue), is_stoppable=is_stoppable
    )


def _not_indexed(queue: Queue) -> str:
    group, topic = f"{INDEX_GROUP}{queue.letter_topic}", queue.letter_topic
    places = [ProviderPartition(topic, number) for number in range(queue.letter_topic_partitions)]
    standings = read_standings(runtime.provider().admin(), {group: places})[group].values()
    left = sum(one.end - max(one.beginning, one.committed or 0) for one in standings)
    return f"{left:,} dead letters are not in the index yet; a consumer host enters them" if left else ""


def _undecided(queue: Queue) -> str:
    number = undecided_letters(queue)
    return f"waits for a decision on {number:,} dead letters: replay or discard them" if number else ""


def _discard(actor: Actor, queue: Queue) -> None:
    letters = DeadLetter.objects.filter(queue=queue, state=LetterState.OPEN).order_by("id").values_list("id", flat=True)
    while chosen := list(letters[:MAX_AT_ONCE]):
        discard_letters(actor, chosen, _DISCARDED)
