"""The rules that every installation begins with. Those about requests have the thresholds of the seeds."""

from collections.abc import Mapping
from typing import Any, Final

from queueapi.choices import AlertMetric, AlertSeverity
from queueapi.models.alert_rule import default_rule_id
from queueapi.selectors.freshness import STALE_AFTER

_CRITICAL: Final = AlertSeverity.CRITICAL
# From there on no other rule can tell anything: that is to be told at once. That it is over is not: where a run takes
# about as long as figures may be old, they are so again and again.
_STALE_S: Final = STALE_AFTER.total_seconds()


def _rule(metric: AlertMetric, name: str, threshold: float, resolve_at: float, **more: Any) -> Mapping[str, Any]:
    """It has to hold for a minute, and to be over for two: what lasts a moment calls nobody."""
    limits = {"threshold": threshold, "resolve_at": resolve_at, "for_s": 60, "resolve_for_s": 120}
    return {"id": default_rule_id(metric), "metric": metric, "name": name, **limits, **more}


DEFAULT_RULES: Final = (
    _rule(AlertMetric.LAG_MESSAGES, "Many messages wait", 10_000, 8_000),
    _rule(AlertMetric.LAG_SECONDS, "A queue is far behind", 300, 240),
    _rule(AlertMetric.STALLED_PARTITIONS, "A partition stops or stalls", 0, 0, severity=_CRITICAL),
    _rule(AlertMetric.ERROR_RATE, "Many attempts fail", 5, 3, severity=_CRITICAL),
    _rule(AlertMetric.NEW_LETTERS, "Dead letters come quickly", 100, 80),
    _rule(AlertMetric.OPEN_LETTERS, "Many dead letters are open", 1_000, 900),
    _rule(AlertMetric.PENDING_REQUESTS, "Many requests are pending", 8_000, 7_000),
    _rule(AlertMetric.REQUEST_TIMEOUTS, "Requests time out", 100, 80, severity=_CRITICAL),
    _rule(AlertMetric.RESPONSE_LAG, "Answers take long", 5_000, 4_000),
    _rule(AlertMetric.LEASE_LOSSES, "A service instance is lost", 0, 0, severity=_CRITICAL, for_s=0, resolve_for_s=0),
    _rule(AlertMetric.PIPELINE_LATE, "The figures are old", _STALE_S, 45, severity=_CRITICAL, for_s=0),
)
