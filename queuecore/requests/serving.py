"""One stay in the responders' group: from when it is joined until it is left, or lost."""

from typing import Final

from queuecore.clock import Clock
from queuecore.providers.base import QueueConsumer
from queuecore.requests.answering import Answering
from queuecore.requests.gathering import Gathering
from queuecore.requests.intake import Intake
from queuecore.requests.options import ResponseOptions
from queuecore.requests.progress import Progress
from queuecore.requests.workers import Workers
from queuecore.topics import ProviderPartition

# While as many are pending as may: how long until it is looked again whether there is room.
_FULL_PAUSE_S: Final = 0.001
_SEND_AGAIN_EVERY_S: Final = 0.5


class Serving:
    """For the thread that reads. It is told by its consumer which partitions it has."""

    def __init__(
        self,
        consumer: QueueConsumer,
        intake: Intake,
        progress: Progress,
        answering: Answering,
        workers: Workers,
        options: ResponseOptions,
        clock: Clock,
    ) -> None:
        self._consumer = consumer
        self._intake = intake
        self._progress = progress
        self._answering = answering
        self._workers = workers
        self._options = options
        self._clock = clock
        self._gathering = Gathering(clock)
        self._most = options.max_pending_requests - options.poll_requests
        self._watched_at = self._committed_at = self._sent_again_at = clock.monotonic()

    def turn(self) -> None:
        """One round: what has ended is counted and committed, and more is read if there is room."""
        self._look()
        if self._progress.pending > self._most:
            self._consumer.keep_alive()
            self._clock.sleep(_FULL_PAUSE_S)
            return
        if records := self._consumer.poll(self._options.poll_interval_ms):
            taken = self._intake.take(records, self._progress.trackers)
            self._progress.take(len(taken.requests), taken.done)
            if taken.requests:
                self._workers.submit(taken.requests)
            self._gathering.pause_after(len(records))

    def finish(self, until: float) -> None:
        """Read no more, wait so long for what is under way, and commit what is done."""
        while self._progress.pending and self._clock.monotonic() < until:
            self._consumer.keep_alive()
            self._look()
            self._clock.sleep(_FULL_PAUSE_S)
        self._progress.settle()
        self._progress.commit(self._consumer)

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        self._progress.give(partitions)

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        """Another responder gets them when this returns: what is under way is waited for, and so not done twice."""
        until = self._clock.monotonic() + self._options.drain_timeout_ms / 1000
        while self._progress.is_open(partitions) and self._clock.monotonic() < until:
            self._look()
            self._clock.sleep(_FULL_PAUSE_S)
        self._progress.commit(self._consumer, partitions)
        self._progress.forget(partitions)

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        self._progress.forget(partitions)

    def _look(self) -> None:
        now = self._clock.monotonic()
        self._answering.send_overdue()
        self._progress.settle()
        self._workers.look()
        if now - self._watched_at >= self._options.poll_interval_ms / 1000:
            self._watched_at = now
            self._end_overruns(now)
        if now - self._sent_again_at >= _SEND_AGAIN_EVERY_S:
            self._sent_again_at = now
            self._answering.send_again()
        if now - self._committed_at >= self._options.commit_interval_ms / 1000:
            self._committed_at = now
            self._progress.commit(self._consumer)

    def _end_overruns(self, now: float) -> None:
        timeout_ms = self._options.request_timeout_ms
        for request in list(self._answering.working):
            is_over = now >= min(request.deadline, request.started_at + timeout_ms / 1000)
            if is_over and self._answering.overrun(request, timeout_ms):
                self._workers.leave_behind(request)
