"""Following a rebalance that somebody asked for. The cluster's coordinator does it, in whichever host that is."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from queueapi.actions.rebalances import follow_rebalance
from queueapi.choices import OperationState
from queueapi.cluster.store import DatabaseStore
from queueapi.models import Operation
from queueapi.selectors.operation_words import waits_because
from queueapi.selectors.services import living
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.cluster.leases import unknown_rebalance
from queuecore.cluster.rebalances import Rebalance, RebalanceState
from queuecore.errors import QueueError, StoreUnavailable
from workers.operations.run import Cancelled, LeaseLost, NotYet, OperationRun

_LOOK_AGAIN_S: Final = 0.2
# It is watched so long by a worker's thread, then by nobody until it is time to look again.
_PATIENCE_S: Final = 10.0
_COME_BACK: Final = timedelta(seconds=5)
_NOBODY: Final = "no service instance is alive to do it; it begins when one has started"


class RebalanceFailed(QueueError):
    """Partitions have not changed hands."""

    code = "rebalance_failed"


class RebalanceKind:
    """The rebalance's own row is the truth: what it says is said again here, and a runner may die anywhere."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock

    def settle(self, run: OperationRun) -> None:
        """An earlier runner has left nothing behind."""

    def run(self, run: OperationRun) -> str:
        rebalance = self._follow(run, is_stoppable=True)
        match rebalance.state:
            case RebalanceState.CANCELLED:
                raise Cancelled
            case RebalanceState.FAILED:
                raise RebalanceFailed(rebalance.error or "it was given up; the hosts' logs say why")
        return _outcome(rebalance)

    def give_back(self, run: OperationRun) -> None:
        """Who cancels the operation cancels the rebalance, and it is over when that is."""
        if Operation.objects.values_list("state", flat=True).get(id=run.operation.id) != OperationState.CANCELLING:
            return
        try:
            before = DatabaseStore().cancel_rebalance(_rebalance_id(run))
        except StoreUnavailable as error:
            raise _later(error) from error
        if not before.state.is_final:
            before = self._follow(run, is_stoppable=False)
        if before.state is RebalanceState.DONE:
            _tell(run, f"too late to cancel: {_outcome(before)}")

    def _follow(self, run: OperationRun, *, is_stoppable: bool) -> Rebalance:
        """The rebalance when it is over. NotYet where that takes long, or nobody is there to do it."""
        until = self._clock.monotonic() + _PATIENCE_S
        while True:
            if is_stoppable:
                run.check()
            run.check_lease()
            rebalance = _look(run)
            if not follow_rebalance(run.operation, rebalance):
                raise LeaseLost
            _tell_of(run, rebalance)
            if rebalance.state.is_final:
                return rebalance
            if rebalance.state is RebalanceState.PLANNED and not living().exists():
                raise NotYet(_COME_BACK, _NOBODY)
            if self._clock.monotonic() >= until:
                raise NotYet(_COME_BACK, _why_it_waits(rebalance))
            self._clock.sleep(_LOOK_AGAIN_S)


def _look(run: OperationRun) -> Rebalance:
    try:
        rebalance = DatabaseStore().find_rebalance(_rebalance_id(run))
    except StoreUnavailable as error:
        raise _later(error) from error
    if rebalance is None:
        raise unknown_rebalance(_rebalance_id(run))
    return rebalance


def _rebalance_id(run: OperationRun) -> UUID:
    return UUID(run.operation.params["rebalance"])


def _tell_of(run: OperationRun, rebalance: Rebalance) -> None:
    if rebalance.total:
        _tell(run, f"planned: {_size(rebalance)}")
    if rebalance.state is RebalanceState.RETRYING:
        _tell(run, f"planned once more, try {rebalance.tries}: {rebalance.error or 'the cluster has changed'}")


def _tell(run: OperationRun, text: str) -> None:
    """Once, however many runners it takes."""
    if not run.operation.log.filter(text=text).exists():
        run.log(text)


def _size(rebalance: Rebalance) -> str:
    return f"{rebalance.moves:,} partitions change hands, {rebalance.placements:,} are placed"


def _outcome(rebalance: Rebalance) -> str:
    if not rebalance.total:
        return "everything was where it should be; nothing moved"
    paused = ""
    if rebalance.pauses_ms is not None:
        middle_ms, longest_ms = rebalance.pauses_ms
        paused = f"; those that moved were consumed by nobody for {middle_ms:,} ms, at most {longest_ms:,} ms"
    return f"{rebalance.done:,} of {rebalance.total:,} partitions are where they should be{paused}"


def _why_it_waits(rebalance: Rebalance) -> str:
    if rebalance.state is RebalanceState.PLANNED:
        return "waits for its turn: another rebalance is under way, or the coordinator has not seen it yet"
    return "waits until all partitions have been released and taken"


def _later(error: QueueError) -> NotYet:
    return NotYet(_COME_BACK, waits_because(error.message))
