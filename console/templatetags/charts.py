"""Small drawings."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.charts import Chart, sparkline_path
from console.strategies import MESSAGES, PROCESSING_MEANS, SUBMIT_MEANS, Attempt, Picture
from console.templatetags.console import number

register = template.Library()

_WIDTH: Final = 96
_HEIGHT: Final = 24
_SPARKLINE: Final = (
    '<svg class="sparkline" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title><path d="{}"/></svg>'
)
_TREND: Final = (
    '<svg class="trend" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
    "<title>{}</title>{}</svg>"
)

# Of a picture of what becomes of messages: a row for each, a column for each turn.
_ROW: Final = 30
_TURN: Final = 64
_NAMES: Final = 34
_LOOKS: Final = {
    "succeeds": ("good", "done"),
    "succeeds again": ("warn", "again"),
    "fails": ("bad", "fails"),
    "is given up": ("bad", "letter"),
}
_MEANINGS: Final = {str(one): told for means in (SUBMIT_MEANS, PROCESSING_MEANS) for one, told in means.items()}


@register.simple_tag
def sparkline(values: Sequence[float | None], unit: str) -> SafeString:
    """How it was, without axes: its shape is to be seen at a glance, its figures on hover."""
    known = [value for value in values if value is not None]
    if not known:
        return format_html('<span class="quiet">{}</span>', "no history")
    least, most, last = (number(int(each)) for each in (min(known), max(known), known[-1]))
    told = f"Last hour: {least} to {most} {unit}, now {last}"
    return format_html(_SPARKLINE, _WIDTH, _HEIGHT, told, told, sparkline_path(values, _WIDTH, _HEIGHT))


@register.simple_tag
def trend(counts: Sequence[int], newest: datetime) -> SafeString:
    """How many came in each hour, as bars: the newest at the right. `newest` is when the last one came, which the
    pipeline may not have counted yet."""
    most = max(counts, default=0)
    told = f"Last {len(counts)} hours: {number(sum(counts))} letters"
    if not most:
        is_old = newest < timezone.now() - timedelta(hours=len(counts))
        return format_html(
            '<span class="quiet">{}</span>', f"none in {len(counts)} hours" if is_old else "not counted yet"
        )
    told += f", at most {number(most)} in an hour, {number(counts[-1])} in this one"
    each = _WIDTH / len(counts)
    rows = ((f"{index * each:.1f}", *_bar(count, most, each)) for index, count in enumerate(counts) if count)
    bars = format_html_join("", '<rect x="{}" y="{}" width="{}" height="{}"/>', rows)
    return format_html(_TREND, _WIDTH, _HEIGHT, told, told, bars)


def _bar(count: int, most: int, width: float) -> tuple[str, str, str]:
    """Its top, width and height: one letter is to be seen beside a thousand."""
    height = max(1.5, _HEIGHT * count / most)
    return f"{_HEIGHT - height:.1f}", f"{width - 1:.1f}", f"{height:.1f}"


@register.inclusion_tag("parts/chart.html")
def chart(drawn: Chart) -> dict[str, Any]:
    return {"chart": drawn}


@register.filter
def meaning(strategy: str) -> str:
    """What a strategy does, in a sentence."""
    return _MEANINGS[strategy]


@register.inclusion_tag("parts/strategy.html")
def strategy(picture: Picture) -> dict[str, Any]:
    turns = max(attempt.slot for attempt in picture.attempts) + 1
    rows = [{"name": name, "y": index * _ROW + 20} for index, name in enumerate(MESSAGES)]
    return {
        "picture": picture,
        "rows": rows,
        "width": _NAMES + max(turns, 4) * _TURN,
        "height": len(MESSAGES) * _ROW,
        "boxes": [_box(attempt) for attempt in picture.attempts],
    }


def _box(attempt: Attempt) -> dict[str, Any]:
    tone, text = _LOOKS[attempt.outcome]
    x, y = _NAMES + attempt.slot * _TURN, attempt.message * _ROW + 4
    return {"tone": tone, "text": text, "x": x, "y": y, "middle": x + (_TURN - 6) / 2, "base": y + 15}
