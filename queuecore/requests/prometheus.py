"""What requests are like, for Prometheus.

from prometheus_client import REGISTRY, start_http_server

REGISTRY.register(RequestCollector([template]))
start_http_server(9100)
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from queuecore.metrics.names import (
    PENDING_REQUESTS,
    PENDING_REQUESTS_MEMORY,
    REQUEST_REFUSALS,
    REQUEST_TIMEOUTS,
    RESPONSE_LAG,
)
from queuecore.requests.counts import LAG_BOUNDS_MS
from queuecore.requests.template import RequestTemplate

_BOUNDS: Final = (*(f"{bound_ms / 1000:g}" for bound_ms in LAG_BOUNDS_MS), "+Inf")


class RequestCollector(Collector):
    """The metrics of these templates, read when they are asked for: nothing that is asked costs more because of it."""

    def __init__(self, templates: Iterable[RequestTemplate]) -> None:
        self._templates = tuple(templates)

    def collect(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily(PENDING_REQUESTS.name, PENDING_REQUESTS.help, labels=PENDING_REQUESTS.labels)
        memory = GaugeMetricFamily(
            PENDING_REQUESTS_MEMORY.name, PENDING_REQUESTS_MEMORY.help, labels=PENDING_REQUESTS_MEMORY.labels
        )
        timeouts = CounterMetricFamily(REQUEST_TIMEOUTS.name, REQUEST_TIMEOUTS.help, labels=REQUEST_TIMEOUTS.labels)
        refusals = CounterMetricFamily(REQUEST_REFUSALS.name, REQUEST_REFUSALS.help, labels=REQUEST_REFUSALS.labels)
        lag = HistogramMetricFamily(RESPONSE_LAG.name, RESPONSE_LAG.help, labels=RESPONSE_LAG.labels)
        for template in self._templates:
            labels, counts = (template.service_id, template.topics.name), template.counts
            pending.add_metric(labels, counts.pending)
            memory.add_metric(labels, counts.pending_memory)
            timeouts.add_metric(labels, counts.timed_out)
            refusals.add_metric(labels, counts.refused)
            lag.add_metric(labels, _cumulative(counts.lag_buckets), counts.lag_total_ms / 1000)
        yield from (pending, memory, timeouts, refusals, lag)


def _cumulative(buckets: Sequence[int]) -> list[tuple[str, int]]:
    return list(zip(_BOUNDS, accumulate(buckets), strict=True))
