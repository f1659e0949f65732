"""Waiting for something at the provider or in the cluster, without keeping a worker's thread for long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from queueapi.selectors.operation_words import waits_because
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import GroupActive, NotOwner, ProducerFenced, QueueError
from workers.operations.run import NotYet, OperationRun

_LOOK_AGAIN_S: Final = 0.2
# It is watched so long by a worker's thread, then by nobody until it is time to look again.
_PATIENCE_S: Final = 10.0
_COME_BACK: Final = timedelta(seconds=5)
# Somebody else is still at it, and will not be for long.
_IN_THE_WAY: Final = (ProducerFenced, NotOwner, GroupActive)


def wait_until_done(
    run: OperationRun, why_not_yet: Callable[[], str], clock: Clock = SYSTEM_CLOCK, *, is_stoppable: bool = True
) -> None:
    """Until there is no reason to wait any more. NotYet, with the reason, where that takes long; Cancelled and Paused
    where it is stoppable."""
    until = clock.monotonic() + _PATIENCE_S
    while why := why_not_yet():
        run.check() if is_stoppable else run.check_lease()
        if clock.monotonic() >= until:
            raise NotYet(_COME_BACK, why)
        clock.sleep(_LOOK_AGAIN_S)


@contextmanager
def trying_again() -> Iterator[None]:
    """What a provider or a store refuses now, and may not later, puts the operation off."""
    try:
        yield
    except QueueError as error:
        if error.retryable or isinstance(error, _IN_THE_WAY):
            raise NotYet(_COME_BACK, waits_because(error.message)) from error
        raise
