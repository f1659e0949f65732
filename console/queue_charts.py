"""How a queue was: lag, rates, processing times and failures, drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.urls import reverse

from console.chart_ranges import ChartRange
from console.charts import Chart, Mark, Series, Span, draw
from console.templatetags.console import as_milliseconds, rate, seconds
from queueapi.alerting.metrics import number
from queueapi.cluster.models import Rebalance
from queueapi.models import Queue
from queueapi.selectors.histories import lag_history, processing_history
from queueapi.selectors.rebalances import rebalances_of

_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
# Of a stretch that has only just begun nobody knows the rate.
_SHORTEST: Final = _MINUTE
_FAILURES: Final = {
    "failed": "Failed",
    "timed_out": "Timed out",
    "retried": "Tried again",
    "dead_lettered": "Dead-lettered",
}

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class QueueCharts:
    charts: list[Chart]
    rebalances: list[Rebalance]


def queue_charts(queue: Queue, asked: ChartRange, now: datetime, *, marks_rebalances: bool = True) -> QueueCharts:
    span = asked.span
    moved = rebalances_of(queue, span.begin, span.end) if marks_rebalances else []
    marks = [_mark(rebalance) for rebalance in moved]
    return QueueCharts([*_lag(queue, asked, now, marks), *_processing(queue, asked, now, marks)], moved)


def _lag(queue: Queue, asked: ChartRange, now: datetime, marks: list[Mark]) -> list[Chart]:
    span = asked.span
    found = lag_history(queue, asked.resolution).filter(at__gte=span.begin, at__lt=span.end)
    rows = list(found.values_list("at", "lag_messages", "lag_seconds", "produced", "consumed"))
    messages, behind = (_largest(span, rows, column) for column in (1, 2))
    produced, consumed = (_rates(span, rows, column, now, _SECOND) for column in (3, 4))
    return [
        draw("messages", "Lag in messages", span, [Series("Lag", messages)], _messages, marks, least=4),
        draw("seconds", "Lag in seconds", span, [Series("Lag", behind)], seconds, marks),
        draw("rates", "Rates", span, [Series("Produced", produced), Series("Consumed", consumed)], rate, marks),
    ]


def _processing(queue: Queue, asked: ChartRange, now: datetime, marks: list[Mark]) -> list[Chart]:
    span = asked.span
    found = processing_history(queue, asked.resolution).filter(at__gte=span.begin, at__lt=span.end)
    rows = list(found.values_list("at", "p50_ms", "p95_ms", "p99_ms", *_FAILURES))
    times = [Series(name, _largest(span, rows, column)) for column, name in enumerate(("p50", "p95", "p99"), 1)]
    failures = [
        Series(name, _rates(span, rows, column, now, _MINUTE)) for column, name in enumerate(_FAILURES.values(), 4)
    ]
    title = "Processing time of packs"
    if span.step > asked.resolution.stretch:
        title += f", in the slowest {asked.resolution}s"
    return [
        draw("processing", title, span, times, as_milliseconds, marks),
        draw("failures", "Attempts that fail", span, failures, _a_minute, marks, least=4),
    ]


def _largest(span: Span, rows: Iterable[Row], column: int) -> list[float | None]:
    """The most in each stretch."""
    values: list[float | None] = [None] * len(span.times)
    for row in rows:
        index, value = int((row[0] - span.begin) / span.step), row[column]
        if value is not None:
            values[index] = max(values[index] or 0, value)
    return values


def _rates(span: Span, rows: Iterable[Row], column: int, now: datetime, unit: timedelta) -> list[float | None]:
    """What was counted in each stretch, by how many units of time that has lasted."""
    counts: list[int | None] = [None] * len(span.times)
    for row in rows:
        index = int((row[0] - span.begin) / span.step)
        counts[index] = (counts[index] or 0) + row[column]
    lasted = [min(span.step, now - at) for at in span.times]
    return [
        None if count is None or length < _SHORTEST else count / (length / unit)
        for count, length in zip(counts, lasted, strict=True)
    ]


def _mark(rebalance: Rebalance) -> Mark:
    at = rebalance.started_at or rebalance.created_at
    text = f"Rebalance at {at:%H:%M:%S} UTC: {rebalance.reason}"
    return Mark(at, text, reverse("rebalance", args=[rebalance.pk]))


def _messages(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def _a_minute(value: float) -> str:
    return f"{number(value)}/min"
