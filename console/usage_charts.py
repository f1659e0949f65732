"""What a tenant used by day, drawn."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from console.charts import Chart, Series, Span, draw
from console.templatetags.console import size
from queueapi.models import TenantUsageDay

_DAY: Final = timedelta(days=1)


def usage_charts(usage: Iterable[TenantUsageDay], days: int, last: date) -> list[Chart]:
    """Of the days up to the last."""
    end = datetime.combine(last, time(), UTC) + _DAY
    span = Span(end - days * _DAY, end, _DAY)
    by_day = {one.day: one for one in usage}
    rows = [by_day.get(at.date()) for at in span.times]

    def series(name: str, field: str) -> Series:
        return Series(name, [None if row is None else getattr(row, field) for row in rows])

    counted = [series("Sent", "sent"), series("Handled", "handled")]
    failed = [series("Errors", "errors"), series("Dead letters", "dead_letters")]
    stored = [series("Sent", "sent_bytes"), series("Stored", "stored_bytes")]
    return [
        draw("usage-messages", "Messages a day", span, counted, _messages, least=4),
        draw("usage-bytes", "Bytes sent a day, and stored in its own queues", span, stored, _bytes, least=1024),
        draw("usage-errors", "Errors and dead letters a day", span, failed, _messages, least=4),
    ]


def _messages(value: float) -> str:
    return f"{value:,.0f}"


def _bytes(value: float) -> str:
    return size(round(value))
