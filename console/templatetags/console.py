"""How values look everywhere: numbers with units, times with zone and age, states as badges."""

import json
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from django import template
from django.forms import BoundField
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.environments import Environment
from console.lists import Sort
from console.payloads import show_payload
from queueapi.config import config
from queueapi.models import ConsumerStanding
from queueapi.selectors.lag import QueueLag
from queueapi.selectors.message_shapes import ShownMessage

register = template.Library()

NOTHING = "\N{EN DASH}"
_SHARES = ("poll", "process", "back_pressure", "commit")
_BUDGET = (
    '<svg class="budget" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>'
    "{}</svg>"
)
PREVIEW_CHARACTERS = 120
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@register.filter
def number(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


@register.filter
def whole(value: float) -> str:
    return number(round(value))


@register.filter
def hundredths(value: float) -> str:
    """0.256 as 25.6, for drawings that are 100 wide."""
    return f"{value * 100:.1f}"


@register.filter
def rate(value: float | None) -> str:
    """Per second, with as many digits as say something."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}/s" if value >= 100 or value == 0 else f"{value:,.1f}/s"


@register.filter
def percent(value: float) -> str:
    """0.256 as 26 %."""
    return f"{value * 100:.0f} %"


@register.filter
def size(value: int | None) -> str:
    """1 536 bytes as 1.5 KiB."""
    if value is None:
        return NOTHING
    if value < 1024:
        return f"{value} B"
    return f"{value / 1024:,.1f} KiB" if value < 1024**2 else f"{value / 1024**2:,.1f} MiB"


@register.filter
def duration(value: timedelta | None) -> str:
    """The largest unit that fits, as ages are told."""
    if value is None:
        return NOTHING
    seconds = max(int(value.total_seconds()), 0)
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds // length:,} {unit}"
    return f"{seconds} s"


@register.filter
def milliseconds(value: int) -> str:
    return f"{value / 1000:g} s" if value >= 1000 else f"{value} ms"


@register.filter
def seconds(value: float | None) -> str:
    """A length of time with as many digits as say something; from minutes on, its two largest units."""
    if value is None:
        return NOTHING
    if value < 1:
        return f"{value * 1000:.0f} ms" if value else "0 s"
    if value < 60:
        return f"{value:.3g} s" if value < 10 else f"{value:.0f} s"
    left = int(value)
    parts: list[str] = []
    for length, unit in (*_UNITS, (1, "s")):
        number, left = divmod(left, length)
        if number or parts:
            parts.append(f"{number:,} {unit}" if number else "")
    return " ".join(part for part in parts[:2] if part)


@register.filter
def as_milliseconds(value: float | None) -> str:
    """A time that is kept in milliseconds, as `seconds` tells it."""
    return NOTHING if value is None else seconds(value / 1000)


@register.filter
def eta(lag: QueueLag) -> str:
    """When nothing will be waiting any more. Old figures foretell nothing. That the few grow which wait where all is
    well calls for nobody."""
    if not lag.lag_messages or lag.is_stale:
        return NOTHING
    if lag.drain_eta_s is not None:
        return "within 1 s" if lag.drain_eta_s < 1 else f"in {seconds(lag.drain_eta_s)}"
    told = "growing" if (lag.trend_per_s or 0) > 0 else "not draining"
    return format_html('<span class="text-warn">{}</span>', told) if lag.is_troubled else told


@register.filter
def milliseconds_long(value: int) -> str:
    """In whole days, hours or minutes where that is exact."""
    for length, unit in _UNITS:
        if value and value % (length * 1000) == 0:
            return f"{value // (length * 1000):,} {unit}"
    return milliseconds(value)


@register.filter
def age_text(value: datetime) -> str:
    """`console.js` counts on from here, in the same words."""
    ago = timezone.now() - value
    return f"in {duration(-ago)}" if ago < timedelta(0) else f"{duration(ago)} ago"


@register.filter
def age(value: datetime | None) -> str:
    """How long ago; the exact time on hover."""
    if value is None:
        return NOTHING
    seconds = int((timezone.now() - value).total_seconds())
    template = '<time datetime="{}" title="{}" data-age="{}">{}</time>'
    return format_html(template, value.isoformat(), utc(value), seconds, age_text(value))


@register.filter
def utc(value: datetime | None) -> str:
    return f"{value.astimezone(timezone.get_default_timezone()):%Y-%m-%d %H:%M:%S} UTC" if value else NOTHING


@register.filter
def exact(milliseconds: int) -> str:
    """Since the epoch, as a time of which the milliseconds matter."""
    at = datetime.fromtimestamp(milliseconds / 1_000, tz=timezone.get_default_timezone())
    return f"{at:%Y-%m-%d %H:%M:%S}.{milliseconds % 1_000:03} UTC"


@register.filter
def day_and_minute(value: datetime) -> str:
    return f"{value.astimezone(timezone.get_default_timezone()):%d %b %H:%M} UTC"


@register.filter
def clock(value: datetime) -> str:
    """The time of day, for what is minutes old at most."""
    return f"{value.astimezone(timezone.get_default_timezone()):%H:%M:%S} UTC"


@register.filter
def moment(value: datetime | None) -> str:
    """The exact time, with its age behind it."""
    if value is None:
        return NOTHING
    return format_html('<span class="moment">{} <span class="quiet">({})</span></span>', utc(value), age(value))


@register.filter
def plural(count: int, words: str) -> str:
    """`3|plural:"letter,letters"` is "3 letters"."""
    one, many = words.split(",")
    return f"{number(count)} {one if count == 1 else many}"


@register.filter
def short_class(name: str) -> str:
    """An error's class without its package, which the whole name on hover has."""
    return name.rpartition(".")[2] or name


@register.filter
def words(name: str) -> str:
    """`retries_exhausted` as people say it."""
    return name.replace("_", " ")


@register.filter
def told(value: Any) -> str:
    """A field's value: what is nothing is seen as well."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOTHING if value is None else str(value) or "(empty)"


@register.filter
def pretty(value: Any) -> str:
    """A JSON value as indented text, bounded."""
    return show_payload(json.dumps(value).encode()).text


@register.filter
def whole_payload(message: ShownMessage) -> str:
    """As much of it as is shown; JSON indented."""
    return message.payload if isinstance(message.payload, str) else pretty(message.payload)


@register.filter
def preview(message: ShownMessage) -> str:
    """Its beginning, on one line."""
    payload = message.payload
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    line = " ".join(text[: 2 * PREVIEW_CHARACTERS].split())
    return (
        f"{line[:PREVIEW_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}" if len(line) > PREVIEW_CHARACTERS else line or "(empty)"
    )


@register.simple_tag
def badge(state: Any) -> SafeString:
    """A state of `queueapi.choices`: its label in its tone."""
    return tone_badge(state.label, state.tone.value)


@register.simple_tag
def tone_badge(label: str, tone: str) -> SafeString:
    return format_html('<span class="badge tone-{}">{}</span>', tone, label)


@register.simple_tag
def budget_bar(standing: ConsumerStanding) -> SafeString:
    """A second of a consumer's time as one bar, with the figures on hover."""
    shares = [(name, standing.budget.get(name, 0.0)) for name in _SHARES]
    told = ", ".join(f"{words(name)} {percent(share)}" for name, share in shares)
    whole = max(1.0, sum(share for _, share in shares))
    ends = accumulate(share for _, share in shares)
    places = (
        (name, f"{100 * (end - share) / whole:.1f}", f"{100 * share / whole:.1f}")
        for (name, share), end in zip(shares, ends, strict=True)
    )
    parts = format_html_join("", '<rect class="share-{}" x="{}" width="{}" height="8"/>', places)
    return format_html(_BUDGET, told, told, parts)


@register.simple_tag
def environment() -> Environment:
    """Which installation this is: nobody should act on production by mistake."""
    return Environment.of(config())


@register.simple_tag(takes_context=True)
def query_with(context: dict[str, Any], name: str, value: str) -> str:
    """The address's query with another value of one parameter, from the first page on; nothing: without it."""
    query = context["request"].GET.copy()
    query.pop("page", None)
    query.pop(name, None)
    if value:
        query[name] = value
    return f"?{query.urlencode()}"


@register.inclusion_tag("parts/sort_header.html", takes_context=True)
def sort_header(context: dict[str, Any], column: str, label: str, kind: str = "") -> dict[str, Any]:
    """A column heading that sorts by `column`, or the other way round where it already does."""
    sort: Sort = context["sort"]
    is_current = sort.column == column
    direction = "descending" if sort.descending else "ascending"
    return {
        "request": context["request"],
        "label": label,
        "kind": kind,
        "direction": direction if is_current else "",
        "next": Sort(column, is_current and not sort.descending).parameter,
    }


@register.inclusion_tag("parts/field.html")
def field(bound: BoundField) -> dict[str, Any]:
    """A form field with its label, help and errors tied to it."""
    return {"field": bound}
