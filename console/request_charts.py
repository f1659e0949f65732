"""Requests between services, drawn: how they were, and how long answers took."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from console.chart_ranges import ChartRange
from console.charts import Chart, Series, draw
from console.request_limits import RequestLimits
from console.templatetags.console import as_milliseconds, whole
from queueapi.alerting.metrics import number
from queueapi.selectors.pending_requests import all_requests
from queuecore.requests import LAG_BOUNDS_MS

_MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class TimeBar:
    """So many took up to `label`; `share` is of the longest bar, 0 to 1."""

    label: str
    count: int
    share: float
    is_beyond: bool


def time_bars(counts: Sequence[int], limits: RequestLimits) -> list[TimeBar]:
    """Of counts by `LAG_BOUNDS_MS`, from the shortest time that any took to the longest. Beyond: longer than the
    limit."""
    bounds = [
        *(f"up to {as_milliseconds(bound)}" for bound in LAG_BOUNDS_MS),
        f"over {as_milliseconds(LAG_BOUNDS_MS[-1])}",
    ]
    least = [0, *LAG_BOUNDS_MS]
    some = [index for index, count in enumerate(counts) if count]
    if not some:
        return []
    most = max(counts)
    return [
        TimeBar(bounds[index], counts[index], counts[index] / most, least[index] >= limits.lag_ms)
        for index in range(some[0], some[-1] + 1)
    ]


def request_charts(asked: ChartRange, limits: RequestLimits, now: datetime) -> list[Chart]:
    """With a line where somebody is called."""
    span, stretch = asked.span, asked.resolution.stretch
    found = all_requests(span.begin, span.end, asked.resolution)
    rows: dict[datetime, Sequence[Any]] = {
        at: (pending, _a_minute(timed_out, at, stretch, now), p99) for at, pending, timed_out, p99 in found
    }
    pending, timed_out, slowest = (
        [_most(rows, at, span.step, stretch, column) for at in span.times] for column in range(3)
    )
    average = ", on average" if stretch > _MINUTE else ""
    return [
        draw("pending", "Pending, of all services", span, _limited("Pending", pending, limits.pending), whole, least=4),
        draw(
            "timeouts",
            f"Timed out a minute{average}",
            span,
            _limited("Timed out", timed_out, limits.timed_out),
            number,
            least=4,
        ),
        draw("answers", "Slowest p99 of answers", span, _limited("p99", slowest, limits.lag_ms), as_milliseconds),
    ]


def _a_minute(count: int, at: datetime, stretch: timedelta, now: datetime) -> float:
    """Of a stretch that goes on, by how long it has lasted."""
    return count / max(min(stretch, now - at) / _MINUTE, 1)


def _limited(name: str, values: list[float | None], limit: float) -> list[Series]:
    """With the limit, where the values come near it: a line far above would flatten them."""
    most = max((value for value in values if value is not None), default=0)
    return [Series(name, values), *([Series("Limit", [limit] * len(values))] if most >= limit / 4 else [])]


def _most(
    rows: dict[datetime, Sequence[Any]], at: datetime, step: timedelta, stretch: timedelta, column: int
) -> float | None:
    found = [row[column] for index in range(step // stretch) if (row := rows.get(at + index * stretch))]
    return max((value for value in found if value is not None), default=None)
