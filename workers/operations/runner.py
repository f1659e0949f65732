"""One operation from claim to end."""

import logging
from typing import Final
from uuid import UUID, uuid4

from django.db import transaction

from queueapi.actions.dead_letters import REPLAY
from queueapi.actions.operations import claim_operation, finish_operation
from queueapi.choices import OperationState
from queueapi.identity import service_id
from queuecore.errors import QueueError
from workers.operations.replay import Replay
from workers.operations.run import Cancelled, LeaseLost, OperationKind, OperationRun

logger = logging.getLogger(__name__)

KINDS: Final[dict[str, OperationKind]] = {REPLAY: Replay()}


def run_operation(operation_id: UUID) -> None:
    """Run it to its end, unless somebody else does or it is over."""
    owner = f"{service_id()}/{uuid4().hex[:8]}"
    operation = claim_operation(operation_id, owner)
    if operation is None:
        return
    run = OperationRun(operation)
    if operation.attempts > 1:
        run.log(f"taken up again after {operation.done} of {operation.total}")
    if operation.kind not in KINDS:
        _end_early(run, OperationState.FAILED, f"no worker of this version knows operations of kind {operation.kind!r}")
        return
    _run(run)


def _run(run: OperationRun) -> None:
    operation = run.operation
    try:
        run.stop_if_cancelled()
        message = KINDS[operation.kind].run(run)
    except LeaseLost:
        logger.warning("operation %s was taken over by another runner", operation.id)
    except Cancelled:
        _end_early(run, OperationState.CANCELLED, f"cancelled after {operation.done} of {operation.total}")
    except QueueError as error:
        _end_early(run, OperationState.FAILED, str(error))
    except Exception as error:
        logger.exception("operation %s (%s) failed", operation.id, operation.kind)
        _end_early(run, OperationState.FAILED, f"{type(error).__name__}: {error}")
    else:
        run.log(message)
        finish_operation(operation, OperationState.SUCCEEDED)


def _end_early(run: OperationRun, state: OperationState, reason: str) -> None:
    """End it, say why, and give back what it held: all or nothing, so that nothing stays held by what is over."""
    operation = run.operation
    error = reason if state == OperationState.FAILED else ""
    with transaction.atomic():
        if finish_operation(operation, state, error=error):
            run.log(reason)
            if operation.kind in KINDS:
                KINDS[operation.kind].give_back(operation)
