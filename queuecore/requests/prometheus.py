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

from queuecore.requests.counts import LAG_BOUNDS_MS
from queuecore.requests.template import RequestTemplate

_LABELS: Final = ("service_id", "request_topic")
_BOUNDS: Final = (*(f"{bound_ms / 1000:g}" for bound_ms in LAG_BOUNDS_MS), "+Inf")


class RequestCollector(Collector):
    """The metrics of these templates, read when they are asked for: nothing that is asked costs more because of it."""

    def __init__(self, templates: Iterable[RequestTemplate]) -> None:
        self._templates = tuple(templates)

    def collect(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily("pending_requests_count", "Requests that wait for their answers.", labels=_LABELS)
        memory = GaugeMetricFamily(
            "pending_requests_memory_bytes", "What requests take that wait for their answers.", labels=_LABELS
        )
        timeouts = CounterMetricFamily("request_timeout_count", "Requests that had no answer in time.", labels=_LABELS)
        refusals = CounterMetricFamily(
            "request_refused_count", "Requests that were not sent, as too many were pending.", labels=_LABELS
        )
        lag = HistogramMetricFamily("response_lag_seconds", "From request to answer.", labels=_LABELS)
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
