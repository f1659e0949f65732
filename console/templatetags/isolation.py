"""How what was asked for looks, and how far it is."""

from collections.abc import Mapping
from typing import Any, Final

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.templatetags.console import exact_size, milliseconds_long, number, words
from queueapi.choices import IsolationState
from queueapi.models import IsolationRequest
from queuecore.providers.base import FOR_EVER

register = template.Library()

_WAY: Final = (
    IsolationState.REQUESTED,
    IsolationState.APPROVED,
    IsolationState.PROVISIONING,
    IsolationState.HANDING_OVER,
    IsolationState.ACTIVE,
)
_BACK: Final = (IsolationState.ACTIVE, IsolationState.RETIRING, IsolationState.RETIRED)


@register.filter
def setting(value: Any, name: str) -> str:
    """A queue's setting of that name, in its unit."""
    if name.startswith("retention_") and value == FOR_EVER:
        return "no limit"
    if name.endswith("_ms"):
        return milliseconds_long(value)
    if name.endswith("_bytes"):
        return exact_size(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int) else str(value)


@register.filter
def setting_name(name: str) -> str:
    """Without its unit, which the value has."""
    return words(name.removesuffix("_ms"))


@register.filter
def asked_for(asked: Mapping[str, Any]) -> str:
    """What is to be other than in the shared queue."""
    told = [f"{setting_name(name)} {setting(value, name)}" for name, value in asked.items() if name != "name"]
    return ", ".join(told) or "as it is shared"


@register.simple_tag
def isolation_steps(request: IsolationRequest) -> SafeString:
    """The way that it goes, with where it is; nothing for one that has left that way."""
    way = _BACK if request.state in _BACK[1:] else _WAY
    if request.state not in way:
        return SafeString("")
    here = way.index(request.state_choice)
    steps = format_html_join(
        "", "<li{}>{}</li>", ((_mark(index, here), state.label) for index, state in enumerate(way))
    )
    return format_html('<ol class="way" aria-label="States">{}</ol>', steps)


def _mark(index: int, here: int) -> SafeString:
    if index == here:
        return SafeString(' aria-current="step"')
    return SafeString(' class="done"' if index < here else "")
