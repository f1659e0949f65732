"""What the runtime does, told to the pipeline every so often."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable, QueueError, UnknownTopic
from queuecore.hashing import partition_of
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.metrics.samples import Sample, SampleSource, to_event
from queuecore.providers.base import DAY_MS, Provider, QueueAdmin, QueueProducer, TopicSpec
from queuecore.topics import TopicPartitionInfo, with_prefix

logger = logging.getLogger(__name__)

REPORT_EVERY_S: Final = 10.0
# Samples that the provider has neither stored nor refused. Beyond, they are dropped: their room is the messages'.
MOST_UNANSWERED: Final = 10_000

_STOP_WITHIN_S: Final = 10.0
# How long one that finds no room waits for it.
_PATIENCE_S: Final = 2.0


def create_metrics_topic(admin: QueueAdmin, prefix: str = "") -> None:
    """Create the topic that is reported to, where it is missing. The pipeline keeps what it needs of it."""
    admin.create_topics([TopicSpec(with_prefix(prefix, METRICS_TOPIC), METRICS_PARTITIONS, retention_ms=DAY_MS)])


class EventReporter:
    """Sends the samples of its sources to `queue.metrics`, on a thread of its own: nothing that is consumed, sent or
    asked waits for it. While the provider takes none, samples are dropped and counted. Leaving its `with` block stops
    it, after a last report."""

    def __init__(
        self,
        producer: QueueProducer,
        sources: Sequence[SampleSource],
        *,
        interval_s: float = REPORT_EVERY_S,
        prefix: str = "",
        provision: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`producer` is lent: whoever made it stops it. `provision` sees to the topic, and is called before the first
        sample and where there is none."""
        self._producer = producer
        self._sources = sources
        self._topic = with_prefix(prefix, METRICS_TOPIC)
        self._interval_s = interval_s
        self._provision = provision
        self._clock = clock
        self._is_topic_there = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="event-reporter", daemon=True)
        # Guards what follows, which the producer's thread changes as well.
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._unanswered = 0
        self._dropped = 0
        # Whether the last that was answered was dropped: that is said once, and again after some were stored.
        self._is_losing = False

    @property
    def dropped(self) -> int:
        """Samples that nobody took."""
        with self._lock:
            return self._dropped

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_STOP_WITHIN_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def report(self) -> None:
        """What there is to tell now. For one thread at a time."""
        now, at_ms = self._clock.monotonic(), self._clock.now_ms()
        samples = [one for source in self._sources for one in source.samples(now)]
        if not samples:
            return
        refusal = self._see_to_topic()
        for service_id, sample in samples:
            if refusal is None:
                refusal = self._send(service_id, at_ms, sample)
            else:
                # One was refused after it had waited: none of the others is to.
                self._drop(refusal)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            self._report_safely()
        self._report_safely()

    def _report_safely(self) -> None:
        try:
            self.report()
        except Exception:
            # A reporter whose thread is gone would tell nothing any more, and nobody would know.
            logger.exception("a report is incomplete; the next one follows")

    def _see_to_topic(self) -> QueueError | None:
        if self._is_topic_there:
            return None
        try:
            self._provision()
        except QueueError as error:
            return error
        self._is_topic_there = True
        return None

    def _send(self, service_id: str, at_ms: int, sample: Sample) -> QueueError | None:
        """Why it is not even under way, if so."""
        event = to_event(sample, service_id, at_ms)
        number = partition_of(service_id, METRICS_PARTITIONS)
        info = TopicPartitionInfo(self._topic, number, use_internal_partition=True)
        with self._lock:
            is_full = not self._room.wait_for(lambda: self._unanswered < MOST_UNANSWERED, _PATIENCE_S)
            self._unanswered += 1
        if is_full:
            return self._refuse(ProviderUnavailable(f"{MOST_UNANSWERED} samples wait to be stored"))
        try:
            self._producer.send(info, QueueMessage(None, event.SerializeToString()), self._answered, _PATIENCE_S)
        except QueueError as error:
            return self._refuse(error)
        return None

    def _refuse(self, error: QueueError) -> QueueError:
        self._answered(None, error)
        return error

    def _answered(self, metadata: RecordMetadata | None, error: QueueError | None) -> None:  # noqa: ARG002
        with self._lock:
            self._unanswered -= 1
            self._room.notify()
            self._is_losing = self._is_losing and error is not None
        if error is not None:
            self._drop(error)

    def _drop(self, error: QueueError) -> None:
        if isinstance(error, UnknownTopic):
            self._is_topic_there = False
        with self._lock:
            self._dropped += 1
            is_first, self._is_losing = not self._is_losing, True
        level = logging.WARNING if is_first else logging.DEBUG
        logger.log(level, "a sample is dropped, as others will be while the cause lasts: %s", error)


@contextmanager
def reporting(provider: Provider, source: SampleSource, interval_s: float) -> Iterator[EventReporter]:
    """Meanwhile what the source has is reported, and the last of it at the end."""
    producer = provider.producer()

    def provision() -> None:
        create_metrics_topic(provider.admin())

    try:
        with EventReporter(producer, [source], interval_s=interval_s, provision=provision) as reporter:
            yield reporter
    finally:
        producer.stop()
