"""What a lease means to who holds it, and what to say when it is gone."""

import threading
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from queuecore.errors import LeaseLost, NotCoordinator, Superseded, UnknownRebalance


def lease_lost(service_id: str) -> LeaseLost:
    return LeaseLost(
        f"the lease of {service_id} has ended, and what it owned is others' to take; it has to join again",
        service_id=service_id,
    )


def superseded(service_id: str) -> Superseded:
    return Superseded(
        f"another instance has joined as {service_id}; give each a service id of its own, or end this one",
        service_id=service_id,
    )


def not_coordinator(term: int) -> NotCoordinator:
    return NotCoordinator(f"term {term} is over: another instance coordinates, or may any moment", term=term)


def unknown_rebalance(rebalance_id: UUID) -> UnknownRebalance:
    return UnknownRebalance(f"there is no rebalance {rebalance_id}; the list of rebalances has their ids")


def boot_time() -> float:
    """Seconds that go on while the machine sleeps, as others' do: a lease may end in our sleep."""
    return time.clock_gettime(_CLOCK)


# Not every system has the better one.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Lease:
    """How long this instance may rely on being a member, by its own clock. Safe from any thread.

    Measured from before the store was asked, it ends here before it ends there.
    """

    def __init__(self, now: Callable[[], float] = boot_time) -> None:
        self.now = now
        self._lock = threading.Lock()
        self._ends_at = float("-inf")

    def extend(self, asked_at: float, lease_s: float) -> None:
        """The store was asked at that time, and has agreed."""
        with self._lock:
            self._ends_at = max(self._ends_at, asked_at + lease_s)

    def end(self) -> None:
        """The store says that it is over."""
        with self._lock:
            self._ends_at = float("-inf")

    @property
    def remaining_s(self) -> float:
        """0 when it is over."""
        with self._lock:
            return max(0.0, self._ends_at - self.now())
