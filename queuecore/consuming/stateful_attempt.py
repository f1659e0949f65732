"""An attempt at messages whose handlers remember something."""

import threading
from contextlib import AbstractContextManager

from queuecore.consuming.attempt import Attempt, Run
from queuecore.consuming.state import DeliveryState
from queuecore.consuming.work import Outcome, Work
from queuecore.sending import Addressed


class StatefulAttempt(Attempt):
    """What a handler has remembered takes effect with its success, or not at all. One that has seen what others changed
    meanwhile has not failed, and is run again."""

    @staticmethod
    def new_lock() -> AbstractContextManager[bool]:
        # `succeed` calls what takes it again.
        return threading.RLock()

    def succeed(self, run: Run, work: Work, outgoing: tuple[Addressed, ...], tenant: bytes | None) -> bool:
        state = None if run.context is None else run.context.state_in_use
        if not isinstance(state, DeliveryState):
            return super().succeed(run, work, outgoing, tenant)
        with self.lock:
            if run.is_abandoned or self.is_over:
                return False
            if state.apply(work.record.offset):
                return super().succeed(run, work, outgoing, tenant)
            return self.end(run, work, Outcome.POSTPONED)
