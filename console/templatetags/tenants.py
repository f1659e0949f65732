"""How quotas and limits look: each with its unit."""

from collections.abc import Callable
from typing import Final

from django import template

from console.templatetags.console import exact_size, milliseconds_long, number, size

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
    return "no limit" if value is None else _in_unit(value, name, exact_size)


@register.filter
def used(value: int, name: str) -> str:
    """How much of the quota of that name is used; about so, where it is much."""
    return _in_unit(value, name, size)


def _in_unit(value: int, name: str, told_size: Callable[[int], str]) -> str:
    told = {"messages_per_s": f"{number(value)}/s", "bytes_per_s": f"{told_size(value)}/s", "burst_s": f"{value} s"}
    return told.get(name) or (told_size(value) if name == "stored_bytes" else number(value))


@register.filter
def limit(value: int | None) -> str:
    return "no limit" if value is None else number(value)


@register.filter
def kept_for(value_ms: int | None) -> str:
    return "no limit" if value_ms is None else milliseconds_long(value_ms)
