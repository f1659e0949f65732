"""One operation from claim to end."""

import logging
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from django.db import InterfaceError, OperationalError, transaction

from queueapi.actions.operations import NoLongerOurs, claim_operation, finish_operation, wait_operation
from queueapi.actions.replays import REPLAY
from queueapi.choices import OperationState
from queueapi.identity import service_id
from queueapi.selectors.operation_words import waits_because
from queueapi.selectors.pipeline import BACKFILL
from queueapi.selectors.queue_operations import DELETE, DRAIN, ISOLATE, PROVISION, RESIZE, RETURN
from queueapi.selectors.rebalances import REBALANCE
from queueapi.version import VERSION
from queuecore.errors import QueueError
from workers.operations.backfill import BackfillKind
from workers.operations.deletion import DeletionKind
from workers.operations.drain import DrainKind
from workers.operations.isolation import IsolationKind
from workers.operations.provision import ProvisionKind
from workers.operations.rebalance import RebalanceKind
from workers.operations.replay import ReplayKind
from workers.operations.resizing import ResizeKind
from workers.operations.returning import ReturnKind
from workers.operations.run import Cancelled, LeaseLost, NotYet, OperationKind, OperationRun, Paused

logger = logging.getLogger(__name__)

_COME_BACK: Final = timedelta(seconds=5)

KINDS: Final[dict[str, OperationKind]] = {
    REPLAY: ReplayKind(),
    REBALANCE: RebalanceKind(),
    PROVISION: ProvisionKind(),
    DRAIN: DrainKind(),
    DELETE: DeletionKind(),
    ISOLATE: IsolationKind(),
    RETURN: ReturnKind(),
    RESIZE: ResizeKind(),
    BACKFILL: BackfillKind(),
}


def run_operation(operation_id: UUID) -> None:
    """Run it to its end, unless somebody else does, it is over, or it waits."""
    owner = f"{service_id()}/{uuid4().hex[:8]}"
    operation = claim_operation(operation_id, owner)
    if operation is None:
        return
    run = OperationRun(operation)
    if operation.kind not in KINDS:
        _leave(run)
        return
    try:
        with run.holding_lease():
            _run(run, KINDS[operation.kind])
    except NotYet as reason:
        _wait(run, reason)
    except (LeaseLost, NoLongerOurs):
        logger.warning("operation %s was taken over by another runner", operation.id)


def _run(run: OperationRun, kind: OperationKind) -> None:
    """Whatever stops it, what is undecided is settled first. LeaseLost or NotYet where it is not over."""
    operation = run.operation
    try:
        kind.settle(run)
        run.check()
        message = kind.run(run)
    except (LeaseLost, NotYet, NoLongerOurs):
        raise
    except (InterfaceError, OperationalError) as error:
        # The database is away, or two of us stood in each other's way: no fault of the operation's.
        raise NotYet(_COME_BACK, waits_because(error)) from error
    except Paused:
        wait_operation(operation)
    except Cancelled:
        _end_early(run, kind, OperationState.CANCELLED, f"cancelled after {operation.done} of {operation.total}")
    except QueueError as error:
        _end_early(run, kind, OperationState.FAILED, error.message)
    except Exception as error:
        logger.exception("operation %s (%s) failed", operation.id, operation.kind)
        _end_early(run, kind, OperationState.FAILED, f"{type(error).__name__}: {error}")
    else:
        with transaction.atomic():
            if finish_operation(operation, OperationState.SUCCEEDED, message=message):
                run.log(message)


def _leave(run: OperationRun) -> None:
    """Of a kind that came with a later version, as while workers are upgraded one by one: another worker's to run."""
    operation, kind = run.operation, run.operation.kind
    logger.warning("operation %s is of a kind that this worker does not know: %r; left to another", operation.id, kind)
    _wait(run, NotYet(_COME_BACK, f"waits for a worker that knows operations of kind {kind!r}; {VERSION} does not"))


def _wait(run: OperationRun, reason: NotYet) -> None:
    """The reason is told once, however often it is the same."""
    last = run.operation.log.order_by("-id").first()
    if wait_operation(run.operation, reason.wait) and (last is None or last.text != reason.why):
        run.log(reason.why)


def _end_early(run: OperationRun, kind: OperationKind, state: OperationState, reason: str) -> None:
    """Give back what it held, then end it and say why: nothing stays held by what is over."""
    run.why_ended = reason
    # A runner that stood still has failed alone: another one goes on.
    run.check_held()
    kind.settle(run)
    kind.give_back(run)
    error = reason if state == OperationState.FAILED else ""
    with transaction.atomic():
        if finish_operation(run.operation, state, error=error):
            run.log(reason)
