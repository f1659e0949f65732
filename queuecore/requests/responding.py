"""Who answers: requests are read as a member of the responders' group, handled, answered, and only then committed."""

import logging
import threading
from types import TracebackType
from typing import Final, Self

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import RequestsStopped
from queuecore.providers.base import Provider, QueueProducer
from queuecore.requests.answering import Answering
from queuecore.requests.counts import ResponseCounts
from queuecore.requests.intake import Intake
from queuecore.requests.options import ResponseOptions
from queuecore.requests.progress import Progress
from queuecore.requests.request import Outcome, RequestHandler
from queuecore.requests.serving import Serving
from queuecore.requests.topics import RequestTopics
from queuecore.requests.workers import Workers, workers_for
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)

_DEFAULT_OPTIONS: Final = ResponseOptions()
_STOP_WITHIN_S: Final = 10.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0


class ResponseTemplate:
    """Answers requests of one kind; as many of these as there are, here and elsewhere, share the partitions. Its
    methods are safe from any thread. Leaving its `with` block stops it.

    A request is committed once its answer is stored. One that is under way when the process dies is read by another
    responder, and handled again if somebody still waits for it: handlers must bear that. A request that has expired is
    not begun. A handler that raises, or takes too long, is answered for with an error.

    It reads no more than `max_pending_requests` ahead, and goes on by itself after the provider was away.
    """

    def __init__(
        self,
        provider: Provider,
        topics: RequestTopics,
        handler: RequestHandler,
        options: ResponseOptions = _DEFAULT_OPTIONS,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`handler` is called with each Request, on several threads at once, or awaited if it is async."""
        self.topics = topics
        self.options = options
        self._provider = provider
        self._handler = handler
        self._clock = clock
        self._progress = Progress()
        self._intake = Intake(topics, clock)
        self._stopping = threading.Event()
        self._stop_at = 0.0
        self._producer: QueueProducer | None = None
        self._workers: Workers | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Create the request topic where it is missing, and begin to answer. Once: RequestsStopped after that. Raises
        what the provider does."""
        if self._thread is not None or self._stopping.is_set():
            raise RequestsStopped(f"this responder of {self.topics.name} has been started before; make a new one")
        self._provider.admin().create_topics(self.topics.specs)
        # Who waits for an answer in a log of one machine goes down with it.
        self._producer = self._provider.producer(lasting=False)
        answering = Answering(self._producer, self._progress, self._clock)
        self._workers = workers_for(self._handler, answering, self.options, self.topics.name)
        self._thread = threading.Thread(
            target=self._run, args=(answering, self._workers), name=f"{self.topics.name}-responder", daemon=True
        )
        self._thread.start()

    @property
    def counts(self) -> ResponseCounts:
        outcomes = self._progress.outcomes
        return ResponseCounts(self._progress.pending, **{one.value: outcomes[one] for one in Outcome})

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def partitions(self) -> frozenset[ProviderPartition]:
        """What it answers for now."""
        return frozenset(self._progress.trackers)

    def stop(self, timeout_s: float = _STOP_WITHIN_S) -> bool:
        """Read no more, and let what is under way be answered. What is not by then is left to other responders, and
        False is returned."""
        self._stop_at = self._clock.monotonic() + timeout_s
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout_s + _STOP_WITHIN_S)
        is_done = not self._progress.pending
        if self._workers is not None:
            self._workers.stop()
        if self._producer is not None:
            self._producer.stop()
        return is_done

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # From here on: the thread that reads.

    def _run(self, answering: Answering, workers: Workers) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            joined_at = self._clock.monotonic()
            try:
                self._stay(answering, workers)
            except Exception as error:
                # Whatever it is: a responder whose thread is gone would answer nothing any more.
                logger.debug("requests in %s cannot be read", self.topics.name, exc_info=error)
                if self._clock.monotonic() - joined_at > _LONGEST_PAUSE_S:
                    pause_s = _FIRST_PAUSE_S
                logger.warning("requests in %s are read again in %g s: %s", self.topics.name, pause_s, error)
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _stay(self, answering: Answering, workers: Workers) -> None:
        """In the group until it is stopped, or what the provider raises."""
        consumer = self._provider.consumer(
            self.topics.group, self.topics.name, max_poll_records=self.options.poll_requests
        )
        serving = Serving(consumer, self._intake, self._progress, answering, workers, self.options, self._clock)
        try:
            consumer.subscribe(self.topics.requests, serving)
            while not self._stopping.is_set():
                serving.turn()
            serving.finish(self._stop_at)
            consumer.unsubscribe()
        finally:
            # Whatever comes to an end now belongs to no partition that is held.
            self._progress.forget(tuple(self._progress.trackers))
            consumer.stop()
