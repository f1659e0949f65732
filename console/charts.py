"""Lines over time as SVG: where each point lies, what the axes say, and the same figures as a table.

A drawing is as wide as 1,000 and as high as 100, whatever the page: only lines are drawn in it, which stretch well.
What is to be read is text beside it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil, floor, log10
from typing import Final

WIDTH: Final = 1_000
HEIGHT: Final = 100
# Room above the highest point: a line on the edge would be cut.
_TOP: Final = 3

_STEPS: Final = (1, 2, 4, 6, 8, 10)
_ROWS: Final = 4
_TIMES: Final = 5

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """One line. Its values belong to the chart's times; None: nothing is known of then."""

    name: str
    values: Values


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened."""

    at: datetime
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Span:
    """From when until when a chart is, and of what length its points are."""

    begin: datetime
    end: datetime
    step: timedelta

    @property
    def times(self) -> list[datetime]:
        number = ceil((self.end - self.begin) / self.step)
        return [self.begin + index * self.step for index in range(number)]

    def x(self, at: datetime) -> float:
        return WIDTH * (at - self.begin) / (self.end - self.begin)

    def labels(self) -> list[str]:
        """Of moments that lie evenly over the axis. Days are told where one time of day would mean several."""
        form = "%H:%M" if self.end - self.begin <= timedelta(days=1) else "%d %b %H:%M"
        form = form if self.end - self.begin <= timedelta(days=5) else "%d %b"
        each = (self.end - self.begin) / (_TIMES - 1)
        return [f"{self.begin + index * each:{form}}" for index in range(_TIMES)]


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Column:
    """What is told of one point's time: on hover, and as a row of the table."""

    x: str
    width: str
    at: datetime
    cells: list[str]
    text: str


@dataclass(frozen=True, slots=True)
class PlacedMark:
    x: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class Chart:
    """All that a template needs. `summary` says in a sentence what there is to be seen."""

    name: str
    title: str
    summary: str
    rows: list[str]
    times: list[str]
    lines: list[Line]
    columns: list[Column]
    marks: list[PlacedMark] = field(default_factory=list)
    # Where the lines of the grid are, of HEIGHT.
    grid: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not any(line.path for line in self.lines)


def draw(
    name: str,
    title: str,
    span: Span,
    series: Sequence[Series],
    told: Callable[[float], str],
    marks: Iterable[Mark] = (),
    least: float = 1.0,
) -> Chart:
    """`told` is how a value is written, with its unit. The axis goes up to `least` at least."""
    times = span.times
    most = max((value for one in series for value in one.values if value is not None), default=0.0)
    ceiling = _round_up(max(most, least))
    return Chart(
        name,
        title,
        _summary(times, series, told),
        [told(ceiling * row / _ROWS) for row in range(_ROWS, -1, -1)],
        span.labels(),
        [Line(one.name, _path(span, times, one.values, ceiling)) for one in series],
        [column for index, at in enumerate(times) if (column := _column(span, at, index, series, told))],
        [PlacedMark(_number(span.x(mark.at)), mark) for mark in marks if span.begin <= mark.at <= span.end],
        [_number(_y(ceiling * row / _ROWS, ceiling)) for row in range(_ROWS + 1)],
    )


def sparkline_path(values: Values, width: float, height: float) -> str:
    """A line through the values, from edge to edge; the lowest there is drawn is 0."""
    most = max((value for value in values if value is not None), default=0.0) or 1.0
    each = width / max(len(values) - 1, 1)
    points = [
        None if value is None else (index * each, height - 1 - (height - 2) * value / most)
        for index, value in enumerate(values)
    ]
    return _joined(points, 0.0)


def _path(span: Span, times: Sequence[datetime], values: Values, ceiling: float) -> str:
    """Each value lies in the middle of its stretch. One between two gaps is a dash as long as that."""
    half = span.step / 2
    points = [
        None if value is None else (span.x(at + half), _y(value, ceiling))
        for at, value in zip(times, values, strict=True)
    ]
    return _joined(points, span.x(span.begin + half) * 0.8)


def _joined(points: Iterable[tuple[float, float] | None], dash: float) -> str:
    parts: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is not None:
            parts[-1].append(point)
        elif parts[-1]:
            parts.append([])
    return "".join(_drawn(part, dash) for part in parts if part)


def _drawn(part: list[tuple[float, float]], dash: float) -> str:
    if len(part) == 1:
        [(x, y)] = part
        part = [(x - dash, y), (x + dash, y)]
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in part)


def _column(
    span: Span, at: datetime, index: int, series: Sequence[Series], told: Callable[[float], str]
) -> Column | None:
    """None where nothing is known."""
    values = [one.values[index] for one in series]
    if all(value is None for value in values):
        return None
    cells = ["\N{EN DASH}" if value is None else told(value) for value in values]
    named = zip(series, cells, strict=True)
    text = ", ".join(f"{one.name} {cell}" for one, cell in named) if len(series) > 1 else cells[0]
    width = min(span.x(span.begin + span.step), WIDTH - span.x(at))
    return Column(_number(span.x(at)), _number(width), at, cells, text)


def _summary(times: Sequence[datetime], series: Sequence[Series], told: Callable[[float], str]) -> str:
    sentences = []
    for one in series:
        known = [(value, at) for value, at in zip(one.values, times, strict=True) if value is not None]
        if known:
            most, at = max(known)
            sentences.append(f"{one.name}: at most {told(most)} at {at:%d %b %H:%M} UTC, last {told(known[-1][0])}.")
    return " ".join(sentences) or "Nothing is known of this time."


def _y(value: float, ceiling: float) -> float:
    return HEIGHT - (HEIGHT - _TOP) * value / ceiling


def _round_up(value: float) -> float:
    """The next number that four rows divide well."""
    size: float = 10.0 ** floor(log10(value))
    return next(step * size for step in _STEPS if step * size >= value)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
