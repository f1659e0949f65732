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
# How often handled messages are settled, and the group is looked after, while the handler works.
_SETTLE_EVERY_S: Final = 0.1
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
        is_idle = self._worker.wait_idle(_SETTLE_EVERY_S)
        self._settle()
        if is_idle and self._pending:
            self._begin_chunk()
            is_idle = False
        if is_idle:
            self._is_busy = False
            self._progressed()
            self._resume()
            records = self._consumer.poll(_POLL_MS)
        else:
            self._pause()
            # Gives only what a partition brings that the group gave us just now.
            records = self._consumer.poll(0)
        if records:
            self._take(records)

    def finish(self, deadline: float) -> bool:
        """Read no more and settle what is handled. False when the message under way took longer than to `deadline`."""
        remaining = max(0.0, deadline - time.monotonic())
        if self._settling.commits_first:
            # Nobody else will get what counts as done already.
            is_done = self._worker.wait_idle(remaining)
        else:
            is_done = self._worker.withdraw(None, remaining)
        self._settle()
        return is_done

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        self.held |= partitions

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        if self._settling.commits_first:
            self._forget_pending(partitions)
            self._worker.wait_done(partitions, self._hand_over_s)
        else:
            self._worker.withdraw(partitions, self._hand_over_s)
        self._settle()
        self._forget(partitions)

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        if self._settling.commits_first:
            self._forget_pending(partitions)
        else:
            self._worker.discard(partitions)
        self._forget(partitions)

    def _take(self, records: list[Record]) -> None:
        self._is_busy = True
        if self._settling.commits_first:
            self._pending += records
        else:
            self._begin(records)

    def _begin_chunk(self) -> None:
        chunk, self._pending = self._pending[:_CHUNK], self._pending[_CHUNK:]
        self._begin(chunk)

    def _forget_pending(self, partitions: frozenset[ProviderPartition]) -> None:
        self._pending = [one for one in self._pending if (one.topic, one.partition) not in partitions]

    def _begin(self, records: list[Record]) -> None:
        self._settling.begin(self._consumer, records)
        self._worker.give(records)

    def _settle(self) -> None:
        if handled := self._worker.take_handled():
            self._is_settling = True
            self._settling.settle(self._consumer, handled)
            self._is_settling = False
            self._progressed()

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
