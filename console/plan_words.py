"""Plans in the words of the forms: fields by their labels, values in their units."""

from typing import Any, Final

from console.alert_forms import LABELS as OF_RULES
from console.measured_fields import BYTES, MILLISECONDS, exactly
from console.tenant_forms import LABELS as OF_TENANTS
from queueapi.alerting.metrics import measure
from queueapi.choices import AlertMetric
from queueapi.quotas import QUOTAS

_LABELS: Final = {
    **OF_TENANTS,
    **OF_RULES,
    # Units are with the values; and no field stands beside another here that would tell what it is of.
    "burst_s": "Burst",
    "for_s": "Fires when it lasts",
    "resolve_for_s": "Resolves when it lasts",
    "escalate_after_s": "Escalates after",
    "metric": "What it looks at",
    "channels": "Who is told when it fires",
    "escalation_channels": "Who is told when it escalates",
}
_OF_METRIC: Final = ("threshold", "resolve_at")
_COUNTS: Final = (*QUOTAS, "max_queues", "max_partitions_per_queue")


def label_of(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " ").capitalize())


def told_value(name: str, value: Any, metric: str | None = None) -> Any:
    """A field's value as people read it; as it is where it has no unit. Thresholds are of the rule's metric."""
    if name == "metric" and value in AlertMetric.values:
        return AlertMetric(value).label
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    if name in _OF_METRIC and metric:
        return measure(value, AlertMetric(metric))
    if name == "bytes_per_s":
        return f"{exactly(int(value), BYTES)}/s"
    if name == "messages_per_s":
        return f"{value:,}/s"
    if name.endswith("_bytes"):
        return exactly(int(value), BYTES)
    if name.endswith(("_ms", "_s")):
        return exactly(round(value * (1 if name.endswith("_ms") else 1000)), MILLISECONDS)
    return f"{value:,}" if name in _COUNTS else value
