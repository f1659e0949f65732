"""What consumers and producers do, for Prometheus.

from prometheus_client import REGISTRY, start_http_server

REGISTRY.register(RuntimeCollector([recorder]))
start_http_server(9100)
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from queuecore.metrics import OTHER, PROCESSING_BOUNDS_MS
from queuecore.metrics.consumed import ConsumedCounts
from queuecore.metrics.names import (
    CONSUMER_POLLED,
    ERRORS,
    EVENTS_DROPPED,
    PROCESSING_TIME,
    PRODUCER_FAILED,
    PRODUCER_SENT,
)
from queuecore.metrics.recorder import Recorder
from queuecore.metrics.sent import SentCounts

_BOUNDS: Final = (*(f"{bound_ms / 1000:g}" for bound_ms in PROCESSING_BOUNDS_MS), "+Inf")


class RuntimeCollector(Collector):
    """The metrics of all recorders that this has when they are asked for. They rise as long as this process has
    something to do with a partition; histograms are by queue, as each is many numbers."""

    def __init__(self, recorders: Iterable[Recorder], dropped: Callable[[], int] = lambda: 0) -> None:
        """There may come and go some in what is given. `dropped` tells how many of their samples nobody took."""
        self._recorders = recorders
        self._dropped = dropped

    def collect(self) -> Iterator[Metric]:
        yield from self._consumed()
        yield from self._sent()
        dropped = CounterMetricFamily(EVENTS_DROPPED.name, EVENTS_DROPPED.help)
        dropped.add_metric((), self._dropped())
        yield dropped

    def _consumed(self) -> Iterator[Metric]:
        partitions: defaultdict[tuple[str, ...], ConsumedCounts] = defaultdict(ConsumedCounts)
        queues: defaultdict[tuple[str, ...], ConsumedCounts] = defaultdict(ConsumedCounts)
        for one in (one for recorder in list(self._recorders) for one in recorder.consumed):
            counts, queue = one.counts, (one.queue, one.group)
            where = (one.info.place.topic, str(one.info.partition or 0)) if one.is_told_alone else (OTHER, OTHER)
            partitions[*queue, *where].add(counts)
            queues[queue].add(counts)
        polled = CounterMetricFamily(CONSUMER_POLLED.name, CONSUMER_POLLED.help, labels=CONSUMER_POLLED.labels)
        errors = CounterMetricFamily(ERRORS.name, ERRORS.help, labels=ERRORS.labels)
        for labels, counts in partitions.items():
            polled.add_metric(labels, counts.polled)
            errors.add_metric((*labels, "failed"), counts.failed)
            errors.add_metric((*labels, "timed_out"), counts.timed_out)
        times = HistogramMetricFamily(PROCESSING_TIME.name, PROCESSING_TIME.help, labels=PROCESSING_TIME.labels)
        for labels, counts in queues.items():
            times.add_metric(labels, _cumulative(counts.processing_buckets), counts.processing_total_ms / 1000)
        yield from (polled, errors, times)

    def _sent(self) -> Iterator[Metric]:
        partitions: defaultdict[tuple[str, ...], SentCounts] = defaultdict(SentCounts)
        for one in (one for recorder in list(self._recorders) for one in recorder.sent):
            where = (one.place.topic, str(one.place.partition)) if one.is_told_alone else (OTHER, OTHER)
            partitions[where].add(one.counts)
        sent = CounterMetricFamily(PRODUCER_SENT.name, PRODUCER_SENT.help, labels=PRODUCER_SENT.labels)
        failed = CounterMetricFamily(PRODUCER_FAILED.name, PRODUCER_FAILED.help, labels=PRODUCER_FAILED.labels)
        for labels, counts in partitions.items():
            sent.add_metric(labels, counts.sent)
            failed.add_metric(labels, counts.failed)
        yield from (sent, failed)


def _cumulative(buckets: Sequence[int]) -> list[tuple[str, int]]:
    return list(zip(_BOUNDS, accumulate(buckets), strict=True))
