"""How far a pack is: commits on the way, and word to the group that its consumer still works."""

import logging

from queuecore.clock import Clock
from queuecore.errors import QueueError
from queuecore.providers.base import QueueConsumer
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

# A crash repeats at most this much; dead letters are committed at once, since a repeated one is seen by people.
COMMIT_EVERY_S = 2.0
# Well below any provider's patience with a consumer that does not poll.
KEEP_ALIVE_EVERY_S = 5.0


class PackProgress:
    """One pack's progress. Used by the thread that works on it."""

    def __init__(self, consumer: QueueConsumer, place: ProviderPartition, clock: Clock) -> None:
        self._consumer = consumer
        self._place = place
        self._clock = clock
        self._done: int | None = None
        self._committed_at = self._kept_alive_at = clock.monotonic()

    def done(self, offset: int, *, commit_now: bool) -> None:
        """Everything up to and including this offset is done."""
        self._done = offset + 1
        if commit_now or self._clock.monotonic() - self._committed_at >= COMMIT_EVERY_S:
            self.commit()
        self.keep_alive()

    def commit(self) -> None:
        if self._done is not None:
            self._consumer.commit({self._place: self._done})
            self._done = None
        self._committed_at = self._clock.monotonic()

    def keep_alive(self) -> None:
        if self._clock.monotonic() - self._kept_alive_at >= KEEP_ALIVE_EVERY_S:
            self._consumer.keep_alive()
            self._kept_alive_at = self._clock.monotonic()

    def save(self) -> None:
        """Commit what is done although something went wrong. That matters more than a second error does."""
        try:
            self.commit()
        except QueueError as error:
            logger.warning("%s: what is done could not be committed and will be repeated: %s", self._place, error)
