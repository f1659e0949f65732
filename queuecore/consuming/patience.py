"""How long a consumption waits for what it sent to be stored."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Final

from queuecore.errors import ProviderUnavailable
from queuecore.messages import RecordMetadata

_LONGEST_S: Final = 60.0
# However late it is: a provider that answers at once does so within this.
_LEAST_S: Final = 1.0
# How long the group may hear nothing of us meanwhile.
_SLICE_S: Final = 1.0


@dataclass(slots=True)
class Patience:
    """For the thread that reads.

    told_until  when the consumption is to have ended, if it is told to meanwhile
    deadline    when the partitions at hand are to be given away
    keep_alive  says to the group that the consumer still works; None where it cannot be polled
    """

    told_until: Callable[[], float]
    deadline: float = float("inf")
    keep_alive: Callable[[], None] | None = None

    def wait_for(self, stored: Iterable["Future[RecordMetadata]"]) -> None:
        """Until all are stored, or what refused one. ProviderUnavailable where that takes too long."""
        began_at = time.monotonic()
        for future in stored:
            while not self._is_stored(future, began_at):
                if self.keep_alive is not None:
                    self.keep_alive()

    def _is_stored(self, future: "Future[RecordMetadata]", began_at: float) -> bool:
        until = max(began_at + _LEAST_S, min(began_at + _LONGEST_S, self.deadline, self.told_until()))
        remaining_s = until - time.monotonic()
        try:
            future.result(max(0.0, min(_SLICE_S, remaining_s)))
        except FutureTimeout:
            if remaining_s <= _SLICE_S:
                waited_s = time.monotonic() - began_at
                raise ProviderUnavailable(
                    f"what a handler sent was not acknowledged within {waited_s:.1f} s; look at the provider"
                ) from None
            return False
        return True
