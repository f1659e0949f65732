"""What requests are like, told to the pipeline, and to the log when they need attention."""

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.metrics.reporting import REPORT_EVERY_S, EventReporter
from queuecore.metrics.samples import Sample
from queuecore.proto.events_pb2 import RequestSample
from queuecore.providers.base import QueueProducer
from queuecore.requests.counts import LAG_BOUNDS_MS, RequestCounts
from queuecore.requests.template import RequestTemplate
from queuecore.requests.thresholds import Breach, RequestThresholds, find_breaches

logger = logging.getLogger(__name__)

_DEFAULT_THRESHOLDS: Final = RequestThresholds()
_MINUTE_S: Final = 60.0
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
            age_buckets=counts.age_buckets,
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


class RequestWatches:
    """Several templates, as a source of samples for a reporter. Each is looked at whether or not samples are taken:
    what needs attention is in the log all the same."""

    def __init__(
        self,
        templates: Iterable[RequestTemplate],
        thresholds: RequestThresholds = _DEFAULT_THRESHOLDS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._watches = [RequestWatch(one, thresholds, clock.monotonic()) for one in templates]

    @property
    def breaches(self) -> tuple[Breach, ...]:
        """What is beyond its threshold now."""
        return tuple(breach for watch in self._watches for breach in watch.breaches)

    def samples(self, now: float) -> Iterator[tuple[str, Sample]]:
        for watch in self._watches:
            yield watch.template.service_id, watch.look(now)


class RequestReporter(EventReporter):
    """Reports on these templates alone, and says what of them needs attention."""

    def __init__(
        self,
        producer: QueueProducer,
        templates: Iterable[RequestTemplate],
        thresholds: RequestThresholds = _DEFAULT_THRESHOLDS,
        *,
        interval_s: float = REPORT_EVERY_S,
        prefix: str = "",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`producer` is lent: whoever made it stops it."""
        self._watches = RequestWatches(templates, thresholds, clock)
        super().__init__(producer, [self._watches], interval_s=interval_s, prefix=prefix, clock=clock)

    @property
    def breaches(self) -> tuple[Breach, ...]:
        """What is beyond its threshold now."""
        return self._watches.breaches
