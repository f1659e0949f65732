"""What requests are like, told to the pipeline, and to the log when they need attention."""

import logging
import threading
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import QueueError
from queuecore.hashing import partition_of
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.metrics import EVENT_VERSION, METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event, RequestSample
from queuecore.providers.base import QueueProducer
from queuecore.requests.counts import LAG_BOUNDS_MS, RequestCounts
from queuecore.requests.template import RequestTemplate
from queuecore.requests.thresholds import Breach, RequestThresholds, find_breaches
from queuecore.topics import TopicPartitionInfo, with_prefix

logger = logging.getLogger(__name__)

_DEFAULT_THRESHOLDS: Final = RequestThresholds()
_MINUTE_S: Final = 60.0
_STOP_WITHIN_S: Final = 10.0
# Counts that rise: a sample has how much they rose by.
_RISING: Final = (
    *("sent", "answered", "failed", "timed_out", "not_stored", "cancelled", "refused", "late", "orphans"),
    "lag_total_ms",
)


class RequestWatch:
    """One template, looked at again and again. For one thread."""

    def __init__(self, template: RequestTemplate, thresholds: RequestThresholds, now: float) -> None:
        self.template = template
        self._thresholds = thresholds
        self._before = RequestCounts()
        self._looked_at = now
        # Of the last minute: when it was looked, and how many had timed out since the look before.
        self._timeouts: deque[tuple[float, int]] = deque()
        self.breaches: tuple[Breach, ...] = ()

    def look(self, now: float) -> RequestSample:
        """What happened since the last look. What is beyond its threshold is logged once, and so is its end."""
        counts, before = self.template.counts, self._before
        sample = RequestSample(
            request_topic=self.template.topics.name,
            interval_ms=round((now - self._looked_at) * 1000),
            pending=counts.pending,
            pending_limit=self.template.options.max_pending_requests,
            pending_memory_bytes=counts.pending_memory,
            oldest_pending_ms=counts.oldest_ms,
            lag_bounds_ms=LAG_BOUNDS_MS,
            lag_buckets=[one - other for one, other in zip(counts.lag_buckets, before.lag_buckets, strict=True)],
            **{name: getattr(counts, name) - getattr(before, name) for name in _RISING},
        )
        self._before, self._looked_at = counts, now
        self._timeouts.append((now, sample.timed_out))
        while self._timeouts[0][0] <= now - _MINUTE_S:
            self._timeouts.popleft()
        self._tell(tuple(find_breaches(sample, sum(count for _, count in self._timeouts), self._thresholds)))
        return sample

    def _tell(self, breaches: tuple[Breach, ...]) -> None:
        before, after = ({one.metric for one in some} for some in (self.breaches, breaches))
        name = f"requests of {self.template.service_id} to {self.template.topics.name}"
        for breach in breaches:
            if breach.metric not in before:
                logger.warning("%s: %s", name, breach)
        for metric in sorted(before - after):
            logger.info("%s: %s is below its threshold again", name, metric)
        self.breaches = breaches


class RequestReporter:
    """Sends a sample of each template to `queue.metrics` every so often, on a thread of its own: nothing that is asked
    waits for it. While the provider takes none, samples are dropped and counted. Leaving its `with` block stops it,
    after a last sample."""

    def __init__(
        self,
        producer: QueueProducer,
        templates: Iterable[RequestTemplate],
        thresholds: RequestThresholds = _DEFAULT_THRESHOLDS,
        *,
        interval_s: float = 10.0,
        prefix: str = "",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`producer` is lent: whoever made it stops it."""
        self._producer = producer
        self._watches = [RequestWatch(one, thresholds, clock.monotonic()) for one in templates]
        self._topic = with_prefix(prefix, METRICS_TOPIC)
        self._interval_s = interval_s
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="request-reporter", daemon=True)
        # Written by the producer's thread, or by this one.
        self.dropped = 0

    @property
    def breaches(self) -> tuple[Breach, ...]:
        """What is beyond its threshold now."""
        return tuple(breach for watch in self._watches for breach in watch.breaches)

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
        """One sample of each, now. For one thread at a time."""
        for watch in self._watches:
            service_id = watch.template.service_id
            event = Event(
                version=EVENT_VERSION,
                at_ms=self._clock.now_ms(),
                service_id=service_id,
                request_sample=watch.look(self._clock.monotonic()),
            )
            number = partition_of(service_id, METRICS_PARTITIONS)
            info = TopicPartitionInfo(self._topic, number, use_internal_partition=True)
            try:
                self._producer.send(info, QueueMessage(None, event.SerializeToString()), self._stored)
            except QueueError as error:
                self._stored(None, error)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            self.report()
        self.report()

    def _stored(self, metadata: RecordMetadata | None, error: QueueError | None) -> None:  # noqa: ARG002
        if error is not None:
            self.dropped += 1
            logger.debug("a sample of requests is dropped: %s", error)
