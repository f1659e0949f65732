"""A runner's hold on its operation, and what an operation's kind has to offer."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from django.db import Error as DatabaseError
from django.db import connections

from queueapi.actions.operations import LEASE, extend_lease, log_operation, record_progress
from queueapi.choices import OperationState
from queueapi.models import Operation
from queuecore.clock import SYSTEM_CLOCK, Clock

logger = logging.getLogger(__name__)

_BEAT_S = LEASE.total_seconds() / 6


class Cancelled(Exception):
    """Somebody asked for the end."""


class Paused(Exception):
    """Somebody asked it to wait until it is resumed."""


class LeaseLost(Exception):
    """Another runner has taken over; this one must not touch anything any more."""


class NotYet(Exception):
    """It cannot go on now: it is to be taken up again later, by whoever is free then."""

    def __init__(self, wait: timedelta, why: str) -> None:
        super().__init__(why)
        self.wait = wait
        self.why = why


class OperationRun:
    """One runner's turn. The lease is kept by a thread of its own, so that nothing that takes long can lose it."""

    def __init__(self, operation: Operation, clock: Clock = SYSTEM_CLOCK) -> None:
        self.operation = operation
        # What ended it early, once that is so.
        self.why_ended = ""
        self._is_lost = threading.Event()
        self._extended_at = clock.monotonic()
        self._clock = clock

    @contextmanager
    def holding_lease(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over,), name="operation-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def step(self, done: int) -> None:
        """Say how far it is. Raises Cancelled, Paused or LeaseLost when it is time to stop."""
        self.note(done)
        self.check()

    def note(self, done: int) -> None:
        """Say how far it is. LeaseLost where it is another runner's: in a transaction, nothing of that takes effect."""
        if not record_progress(self.operation, done):
            raise LeaseLost
        self.operation.done = done

    def check(self) -> None:
        """Raises Cancelled, Paused or LeaseLost when it is time to stop."""
        self.check_lease()
        state, paused_at = Operation.objects.values_list("state", "paused_at").get(id=self.operation.id)
        if state == OperationState.CANCELLING:
            raise Cancelled
        if paused_at is not None:
            raise Paused

    def check_lease(self) -> None:
        """LeaseLost where the heart has noticed it, or has not beaten for as long as the lease lasts. Asks nobody."""
        if self._is_lost.is_set() or self._clock.monotonic() - self._extended_at >= LEASE.total_seconds():
            raise LeaseLost

    def check_held(self) -> None:
        """LeaseLost where it is another runner's, or over: asks the database, and keeps it for as long as a lease lasts
        where it is not."""
        if not extend_lease(self.operation):
            raise LeaseLost

    def log(self, text: str) -> None:
        log_operation(self.operation, text)

    def _beat(self, over: threading.Event) -> None:
        try:
            while not over.wait(_BEAT_S):
                self._extend()
        finally:
            connections.close_all()

    def _extend(self) -> None:
        """A database that is away is asked again: the lease outlasts several beats."""
        asked_at = self._clock.monotonic()
        try:
            if extend_lease(self.operation):
                self._extended_at = asked_at
            else:
                self._is_lost.set()
        except DatabaseError as error:
            logger.warning("could not extend the lease of operation %s, will try again: %s", self.operation.id, error)
            connections.close_all()


class OperationKind(Protocol):
    """How operations of one kind are run. A runner may die anywhere: what it left behind is settled before anything
    else happens, even before the operation is cancelled."""

    def settle(self, run: OperationRun) -> None:
        """Find out what an earlier runner left undecided. LeaseLost where that is another runner's now."""

    def run(self, run: OperationRun) -> str:
        """Do the work from `operation.done` on, calling `step` as it goes; what to log at the end."""

    def give_back(self, run: OperationRun) -> None:
        """It ended early: release what it still held. LeaseLost where that is another runner's now."""
