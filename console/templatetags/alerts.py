"""How alerts, their rules and limits look: each value with its unit."""

from typing import Any

from django import template
from django.utils.html import format_html

from console.templatetags.console import milliseconds_long, tone_badge
from queueapi.alerting.metrics import measure
from queueapi.choices import AlertMetric, DeliveryState, Tone
from queueapi.models import AlertRule

register = template.Library()


@register.filter
def measured(value: float | None, metric: str) -> str:
    """A value of that metric, in its unit."""
    return "not known" if value is None else measure(value, AlertMetric(metric))


@register.filter
def metric_name(metric: str) -> str:
    return str(AlertMetric(metric).label)


@register.filter
def lasting(seconds: float) -> str:
    """For how long something has to hold."""
    return f"for {milliseconds_long(round(seconds * 1000))}" if seconds else "at once"


@register.filter
def resolves_at(rule: AlertRule) -> float:
    return rule.threshold if rule.resolve_at is None else rule.resolve_at


@register.filter
def on_or_off(enabled: bool) -> str:
    return tone_badge("On", Tone.GOOD.value) if enabled else tone_badge("Off", Tone.QUIET.value)


@register.filter
def delivery_state(value: str | None) -> Any:
    return DeliveryState(value) if value else None


@register.simple_tag
def names(rows: Any) -> str:
    """Of channels, or that there are none."""
    told = ", ".join(str(row) for row in rows)
    return told or format_html('<span class="quiet">{}</span>', "nobody")
