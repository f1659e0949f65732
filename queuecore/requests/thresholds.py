"""When requests need somebody's attention."""

from collections.abc import Iterator
from dataclasses import dataclass

from queuecore.proto.events_pb2 import RequestSample
from queuecore.requests.counts import lag_percentile


@dataclass(frozen=True, slots=True)
class RequestThresholds:
    """
    pending              more than that wait for their answers: soon the next will be refused
    timeouts_per_minute  more than that had no answer in a minute: responders are overloaded, or gone
    lag_ms               one answer in a hundred takes longer
    """

    pending: int = 8_000
    timeouts_per_minute: int = 100
    lag_ms: int = 5_000


@dataclass(frozen=True, slots=True)
class Breach:
    """A metric beyond its threshold, and what that means."""

    metric: str
    value: float
    threshold: int
    meaning: str

    def __str__(self) -> str:
        return f"{self.metric} is {self.value:g}, above {self.threshold}: {self.meaning}"


def find_breaches(sample: RequestSample, timeouts_per_minute: int, thresholds: RequestThresholds) -> Iterator[Breach]:
    """What of a sample is beyond the thresholds; the timeouts are of the last minute, whatever the sample is of."""
    if sample.pending > thresholds.pending:
        meaning = f"{sample.pending_limit} is the most, then requests are refused; look at the responders"
        yield Breach("pending_requests_count", sample.pending, thresholds.pending, meaning)
    if timeouts_per_minute > thresholds.timeouts_per_minute:
        meaning = "responders are overloaded or gone; start more, or look at why they are slow"
        yield Breach("request_timeout_count", timeouts_per_minute, thresholds.timeouts_per_minute, meaning)
    lag_ms = lag_percentile(sample.lag_buckets, 99)
    if lag_ms > thresholds.lag_ms:
        meaning = "one answer in a hundred takes that long; look at the responders"
        yield Breach("response_lag", lag_ms, thresholds.lag_ms, meaning)
