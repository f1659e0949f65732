"""From where on requests between services are worth a look: what the alert rules say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from console.templatetags.console import number, seconds
from queueapi.alerting.defaults import DEFAULT_RULES
from queueapi.choices import AlertMetric
from queueapi.models import AlertRule
from queueapi.selectors.pending_requests import RequestTotals

_METRICS: Final = (AlertMetric.PENDING_REQUESTS, AlertMetric.REQUEST_TIMEOUTS, AlertMetric.RESPONSE_LAG)
_DEFAULTS: Final[Mapping[str, float]] = {rule["metric"]: rule["threshold"] for rule in DEFAULT_RULES}


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How many may be pending, time out in a minute, and how long 99 of 100 answers may take."""

    pending: float
    timed_out: float
    lag_ms: float


def default_limits() -> RequestLimits:
    return RequestLimits(*(_DEFAULTS[metric] for metric in _METRICS))


def request_limits() -> RequestLimits:
    """The lowest of the rules that are for all requests; where there is none, those that installations begin with."""
    rules = AlertRule.objects.filter(metric__in=_METRICS, request_topic="", enabled=True)
    lowest: dict[str, float] = {}
    for metric, threshold in rules.values_list("metric", "threshold"):
        lowest[metric] = min(threshold, lowest.get(metric, threshold))
    return RequestLimits(*(lowest.get(metric, _DEFAULTS[metric]) for metric in _METRICS))


def exceeded(totals: RequestTotals) -> list[str]:
    """What of all of them together is beyond where installations begin to call somebody, in words."""
    return list(_exceeded(totals, default_limits()))


def _exceeded(totals: RequestTotals, limits: RequestLimits) -> Iterator[str]:
    pending, timed_out = totals.counts["pending"], totals.counts["timed_out"]
    if pending > limits.pending:
        yield f"{number(pending)} are pending"
    if timed_out > limits.timed_out:
        yield f"{number(timed_out)} timed out within a minute"
    if (totals.slowest_p99_ms or 0) > limits.lag_ms:
        yield f"answers take up to {seconds((totals.slowest_p99_ms or 0) / 1000)}"
