"""Every metric that Prometheus can be shown, by the names of the seeds. Whoever exposes one, and whoever reads it, such
as the dashboard in `docs/grafana`, takes it from here."""

from dataclasses import dataclass
from typing import Final, Literal

_ENDINGS: Final = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


@dataclass(frozen=True, slots=True)
class MetricName:
    """`name` is without the ending that Prometheus gives to what is of this kind. `labels` tell series apart."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """What a query can name."""
        return tuple(self.name + ending for ending in _ENDINGS[self.kind])


# Of a process that sends to queues, or consumes them.
_SENDING: Final = ("topic", "partition")
_CONSUMING: Final = ("queue", "group", "topic", "partition")
PRODUCER_SENT: Final = MetricName("queue_producer_sent", "counter", "Messages stored.", _SENDING)
PRODUCER_FAILED: Final = MetricName(
    "queue_producer_failed", "counter", "Messages that the provider did not take.", _SENDING
)
CONSUMER_POLLED: Final = MetricName("queue_consumer_polled", "counter", "Messages read.", _CONSUMING)
ERRORS: Final = MetricName(
    "queue_errors", "counter", "Deliveries to handlers that failed or timed out.", (*_CONSUMING, "outcome")
)
PROCESSING_TIME: Final = MetricName(
    "queue_processing_time_seconds", "histogram", "How long attempts at packs took.", _CONSUMING[:2]
)
EVENTS_DROPPED: Final = MetricName(
    "switchyard_events_dropped", "counter", "Samples of what this process did that the provider did not take."
)

# Of a process that sends requests.
_ASKING: Final = ("service_id", "request_topic")
PENDING_REQUESTS: Final = MetricName(
    "pending_requests_count", "gauge", "Requests that wait for their answers.", _ASKING
)
PENDING_REQUESTS_MEMORY: Final = MetricName(
    "pending_requests_memory_bytes", "gauge", "What requests take that wait for their answers.", _ASKING
)
REQUEST_TIMEOUTS: Final = MetricName(
    "request_timeout_count", "counter", "Requests that had no answer in time.", _ASKING
)
REQUEST_REFUSALS: Final = MetricName(
    "request_refused_count", "counter", "Requests that were not sent, as too many were pending.", _ASKING
)
RESPONSE_LAG: Final = MetricName("response_lag_seconds", "histogram", "From request to answer.", _ASKING)

# Of a web server: what the pipeline has computed. Whole queues, if so set, are told by the first two labels.
_LAGGING: Final = ("queue", "tenant", "group", "partition")
CONSUMER_LAG: Final = MetricName("queue_consumer_lag", "gauge", "Messages that a consumer is behind.", _LAGGING)
CONSUMER_LAG_SECONDS: Final = MetricName(
    "queue_consumer_lag_seconds", "gauge", "How long ago what a consumer is at was stored.", _LAGGING
)
STALE_REFUSED: Final = MetricName(
    "queue_stale_refused", "counter", "Commits that were refused, as another had the partition.", _LAGGING[:2]
)
PIPELINE_AGE: Final = MetricName(
    "switchyard_pipeline_age_seconds", "gauge", "How old the newest event is that the figures are made of."
)
PIPELINE_FAILED_RUNS: Final = MetricName(
    "switchyard_pipeline_failed_runs", "gauge", "Runs of the pipeline that failed, one after the other."
)
PIPELINE_BACKLOG: Final = MetricName(
    "switchyard_pipeline_backlog_events", "gauge", "Events that waited when the pipeline's last run ended."
)

METRICS: Final = (
    PRODUCER_SENT,
    PRODUCER_FAILED,
    CONSUMER_POLLED,
    ERRORS,
    PROCESSING_TIME,
    EVENTS_DROPPED,
    PENDING_REQUESTS,
    PENDING_REQUESTS_MEMORY,
    REQUEST_TIMEOUTS,
    REQUEST_REFUSALS,
    RESPONSE_LAG,
    CONSUMER_LAG,
    CONSUMER_LAG_SECONDS,
    STALE_REFUSED,
    PIPELINE_AGE,
    PIPELINE_FAILED_RUNS,
    PIPELINE_BACKLOG,
)
