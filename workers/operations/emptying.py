"""Waiting until nobody sends to a queue any more, and until it is empty."""

from queueapi.backlog import messages_left
from queueapi.cluster.store import DatabaseStore
from queueapi.models import Queue
from queueapi.routing import publish_routing
from queueapi.selectors.consumers import pauses_of
from workers.operations.run import OperationRun
from workers.operations.waiting import wait_until_done


def await_producers(run: OperationRun, heard: str, *, is_stoppable: bool = True) -> None:
    """Until every producer goes by the routing as the rows say it now; who waits is told so by `heard`.
    StoreUnavailable."""
    store = DatabaseStore()
    version = publish_routing()

    def why_not_yet() -> str:
        behind = store.yet_to_acknowledge(version)
        return f"waits until {', '.join(behind)} {heard}" if behind else ""

    wait_until_done(run, why_not_yet, is_stoppable=is_stoppable)


def await_empty(run: OperationRun, queue: Queue, reserved: int = 0) -> None:
    """Until consumers have committed all messages; so many of the operation's steps are for later."""

    def why_not_yet() -> str:
        left = messages_left(queue)
        note_left(run, left, reserved)
        return f"{left:,} messages are still to be consumed{and_paused(queue)}" if left else ""

    wait_until_done(run, why_not_yet)


def and_paused(queue: Queue) -> str:
    """What of it stands still until a person says go on, for who is told what is waited for; empty: nothing."""
    pauses = ", ".join(pause.what for pause in pauses_of(queue))
    return f", and paused is {pauses}" if pauses else ""


def note_left(run: OperationRun, left: int, reserved: int) -> None:
    """Say how far it is, by what is left of the messages that there were."""
    run.note(max(run.operation.done, run.operation.total - reserved - left))
