"""One stay in a group, from joining to leaving: read, have it handled, settle. For the thread that reads.

While the handler works, reading pauses and polling goes on: the group hears of us however long a message takes, and a
partition can be given away in the middle of a pack.
"""

import time
from collections.abc import Callable
from typing import Final

from queuecore.messages import Record
from queuecore.providers.base import QueueConsumer
from queuecore.queues.settling import Settling
from queuecore.queues.worker import Worker
from queuecore.topics import ProviderPartition

_POLL_MS: Final = 100
# How often handled messages are settled while the handler works.
_SETTLE_EVERY_S: Final = 0.1
# How long the group may hear nothing of us while the handler works. Not shorter: what a provider has fetched ahead may
# be lost by a pause, and fetched again.
_SILENCE_S: Final = 1.0
# As much is committed before it is handled, and lost in a crash.
_CHUNK: Final = 100

_NONE: Final[frozenset[ProviderPartition]] = frozenset()


class Membership:
    """Told by the consumer, as its AssignmentListener, what the group gives and takes."""

    def __init__(
        self,
        consumer: QueueConsumer,
        worker: Worker,
        settling: Settling,
        hand_over_s: float,
        progressed: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._worker = worker
        self._settling = settling
        self._hand_over_s = hand_over_s
        self._silence_s = min(_SILENCE_S, hand_over_s / 4)
        self._polled_at = self._settled_at = time.monotonic()
        self._progressed = progressed
        self._paused: set[ProviderPartition] = set()
        # Read, and neither committed nor with the handler: only where a commit comes first.
        self._pending: list[Record] = []
        # At first the handler may still have what an earlier stay committed.
        self._is_busy, self._is_settling = True, False
        self.held = _NONE

    @property
    def is_behind(self) -> bool:
        """Whether something that is committed may still have to be handled, or to be counted."""
        return self._is_busy if self._settling.commits_first else self._is_settling

    def turn(self) -> None:
        """One round: settle what is handled, and read if the handler has nothing left."""
        if not self._worker.wait_idle(_SETTLE_EVERY_S):
            self._settle()
            self._be_heard()
        elif self._settling.commits_first or not self._read_ahead():
            self._settle()
            if self._pending:
                self._begin_chunk()
            else:
                self._read()
        elif time.monotonic() - self._settled_at >= _SETTLE_EVERY_S:
            # The handler has the next pack already, and does not wait for this.
            self._settle()

    def finish(self, deadline: float) -> bool:
        """Read no more and settle what is handled. False when the message under way took longer than to `deadline`."""
        remaining = max(0.0, deadline - time.monotonic())
        if self._settling.commits_first:
            # Nobody else will get what counts as done already.
            is_done = self._worker.wait_idle(remaining)
        else:
            is_done = self._worker.withdraw(None, remaining)
        self._settle(deadline)
        return is_done

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        self.held |= partitions
        self._settling.take(partitions)

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        deadline = time.monotonic() + self._hand_over_s
        if self._settling.commits_first:
            self._forget_pending(partitions)
            self._worker.wait_done(partitions, self._hand_over_s)
        else:
            self._worker.withdraw(partitions, self._hand_over_s)
        if self._is_settling:
            # In the middle of it, as the consumer is kept alive: what was handled later must not be committed first.
            self._worker.discard(partitions)
        else:
            self._settle(deadline)
        self._forget(partitions)

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        if self._settling.commits_first:
            self._forget_pending(partitions)
        else:
            self._worker.discard(partitions)
        self._forget(partitions)

    def _read(self) -> None:
        """The handler has nothing left, and all is settled."""
        self._is_busy = False
        self._progressed()
        self._resume()
        self._poll(_POLL_MS)

    def _read_ahead(self) -> bool:
        """Give the handler what is there at once, before the last pack is settled. Whether there was any."""
        self._resume()
        return self._poll(0)

    def _be_heard(self) -> None:
        """Poll with all partitions paused, now and then."""
        if time.monotonic() - self._polled_at >= self._silence_s:
            self._pause()
            # Gives only what a partition brings that the group gave us just now.
            self._poll(0)

    def _poll(self, duration_ms: int) -> bool:
        """Whether there was something, which is with the handler now, or pending."""
        records = self._consumer.poll(duration_ms)
        self._polled_at = time.monotonic()
        if not records:
            return False
        self._is_busy = True
        if self._settling.commits_first:
            self._pending += records
        else:
            self._begin(records)
        return True

    def _begin_chunk(self) -> None:
        chunk, self._pending = self._pending[:_CHUNK], self._pending[_CHUNK:]
        self._begin(chunk)

    def _forget_pending(self, partitions: frozenset[ProviderPartition]) -> None:
        self._pending = [one for one in self._pending if (one.topic, one.partition) not in partitions]

    def _begin(self, records: list[Record]) -> None:
        self._settling.begin(self._consumer, records)
        self._worker.give(records)

    def _settle(self, deadline: float | None = None) -> None:
        if handled := self._worker.take_handled():
            self._is_settling = True
            self._settling.settle(self._consumer, handled, deadline)
            self._is_settling = False
            self._progressed()
        self._settled_at = time.monotonic()

    def _forget(self, partitions: frozenset[ProviderPartition]) -> None:
        self.held -= partitions
        self._paused -= partitions
        self._settling.forget(partitions)

    def _pause(self) -> None:
        if reading := self.held - self._paused:
            self._consumer.pause(reading)
            self._paused |= reading

    def _resume(self) -> None:
        if self._paused:
            self._consumer.resume(self._paused)
            self._paused.clear()
