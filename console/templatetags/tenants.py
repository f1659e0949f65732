"""How quotas and limits look: each with its unit."""

from datetime import timedelta
from typing import Final

from django import template

from console.templatetags.console import duration, number, size

register = template.Library()

_NAMES: Final = {
    "messages_per_s": "Messages published",
    "bytes_per_s": "Bytes published",
    "burst_s": "Burst",
    "partitions": "Partitions of own queues",
    "stored_bytes": "Stored in own queues",
}


@register.filter
def quota_name(name: str) -> str:
    return _NAMES[name]


@register.filter
def quota(value: int | None, name: str) -> str:
    """A quota of that name, in its unit."""
    if value is None:
        return "no limit"
    told = {"messages_per_s": f"{number(value)}/s", "bytes_per_s": f"{size(value)}/s", "burst_s": f"{value} s"}
    return told.get(name) or (size(value) if name == "stored_bytes" else number(value))


@register.filter
def limit(value: int | None) -> str:
    return "no limit" if value is None else number(value)


@register.filter
def kept_for(value_ms: int | None) -> str:
    return "no limit" if value_ms is None else duration(timedelta(milliseconds=value_ms))
