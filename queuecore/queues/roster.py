"""Who still runs when queues are closed."""

import threading
from collections.abc import Callable

from queuecore.consuming.consumption import Consumption
from queuecore.errors import QueueError


class Roster:
    """The subscriptions of some queues, until these are closed. Safe from any thread."""

    def __init__(self) -> None:
        # Held while a subscription starts: either it is here when the queues are closed, or it never runs.
        self._lock = threading.Lock()
        self._consumptions: list[Consumption] = []
        self._is_closed = False

    def add(self, make: Callable[[], Consumption]) -> Consumption:
        """Start a subscription's. QueueError once closed."""
        with self._lock:
            if self._is_closed:
                raise QueueError("these queues are closed; open them again")
            self._consumptions = [one for one in self._consumptions if one.is_running or one.has_unseen_error]
            consumption = make()
            self._consumptions.append(consumption)
            consumption.start()
            return consumption

    def close(self) -> bool:
        """Take no more. False when that was said before."""
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
            return is_first

    @property
    def has_this_thread(self) -> bool:
        """Whether this is one of their handlers, which cannot wait for its own end."""
        with self._lock:
            return any(one.is_handler_thread for one in self._consumptions)

    def stop(self, timeout_s: float) -> None:
        """All of them, once closed: each within the time, together in hardly more."""
        for one in self._consumptions:
            one.tell_to_stop(timeout_s)
        for one in self._consumptions:
            one.stop(timeout_s)

    def raise_unseen(self) -> None:
        """What ended one of them and nobody has been told yet."""
        unseen = [one.see_error() for one in self._consumptions if one.has_unseen_error]
        for error in unseen:
            if error is not None:
                raise error
