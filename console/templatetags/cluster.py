"""How the cluster's values look: loads as bars, lists of names in brief, how long a rebalance took."""

from collections.abc import Sequence
from typing import Final

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.templatetags.console import NOTHING, duration
from queueapi.cluster.models import Rebalance
from queuecore.topics import ServiceType

register = template.Library()

_CAUSES: Final = {"membership": "Services", "partitions": "Partitions", "request": "Asked for"}
_MARK: Final = 1.2
_BAR: Final = (
    '<svg class="share-bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>'
    '<rect class="load" width="{}" height="8"/><rect class="due" x="{}" width="{}" height="8"/></svg>'
)


@register.simple_tag
def share_bar(count: int, share: float, most: float) -> SafeString:
    """What a service has, with a mark at what it should have."""
    told = f"{count:,} of its share of {share:,.1f}"
    has, due = (min(100.0, 100 * value / most) if most else 0.0 for value in (count, share))
    return format_html(_BAR, told, told, f"{has:.1f}", f"{max(0.0, due - _MARK):.1f}", _MARK if share else 0)


@register.filter
def brief(names: Sequence[str]) -> str:
    """The first, and how many more; all of them on hover."""
    if len(names) <= 1:
        return names[0] if names else NOTHING
    return format_html('<span title="{}">{} <span class="quiet">+{}</span></span>', ", ".join(names), *_first(names))


def _first(names: Sequence[str]) -> tuple[str, int]:
    return names[0], len(names) - 1


@register.filter
def service_types(kinds: Sequence[str]) -> str:
    if len(set(kinds)) == len(ServiceType):
        return format_html('<span title="{}">all</span>', ", ".join(kinds))
    return brief(kinds)


@register.filter
def cause(rebalance: Rebalance) -> str:
    """What it was begun for."""
    return _CAUSES.get(rebalance.cause, rebalance.cause)


@register.filter
def took(rebalance: Rebalance) -> str:
    """How long it lasts, or has lasted."""
    if rebalance.started_at is None:
        return NOTHING
    length = (rebalance.finished_at or timezone.now()) - rebalance.started_at
    seconds = max(length.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else duration(length)
