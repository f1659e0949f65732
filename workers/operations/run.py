"""A runner's hold on its operation, and what an operation's kind has to offer."""

from typing import Protocol

from queueapi.actions.operations import extend_lease, is_cancelling, log_operation
from queueapi.models import Operation


class Cancelled(Exception):
    """Somebody asked for the end."""


class LeaseLost(Exception):
    """Another runner has taken over; this one must not touch anything any more."""


class OperationRun:
    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def step(self, done: int) -> None:
        """Say how far it is, keep the lease. Raises Cancelled or LeaseLost when it is time to stop."""
        if not extend_lease(self.operation, done):
            raise LeaseLost
        self.operation.done = done
        self.stop_if_cancelled()

    def stop_if_cancelled(self) -> None:
        if is_cancelling(self.operation):
            raise Cancelled

    def log(self, text: str) -> None:
        log_operation(self.operation, text)


class OperationKind(Protocol):
    def run(self, run: OperationRun) -> str:
        """Do the work from `operation.done` on, calling `step` as it goes; what to log at the end."""

    def give_back(self, operation: Operation) -> None:
        """It ended early: release what it still held."""
