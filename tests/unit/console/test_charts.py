"""Lines over time: where they lie, where they break, and what is told of them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from console.chart_ranges import asked_range
from console.charts import HEIGHT, Mark, Series, Span, draw, sparkline_path
from queueapi.selectors.histories import Resolution

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
HOUR = Span(NOON, NOON + timedelta(minutes=4), timedelta(minutes=1))


def told(value: float) -> str:
    return f"{value:g} m"


def points(path: str) -> list[list[tuple[float, float]]]:
    """Of each unbroken part."""
    return [
        [(float(x), float(y)) for x, y in (pair.split(" ") for pair in part.split("L"))] for part in path.split("M")[1:]
    ]


def test_a_line_lies_between_nothing_and_a_round_number() -> None:
    chart = draw("lag", "Lag", HOUR, [Series("Lag", [0, 70, 35, 0])], told)
    [[*ys]] = [[y for _, y in part] for part in points(chart.lines[0].path)]
    assert chart.rows == ["80 m", "60 m", "40 m", "20 m", "0 m"]
    assert (ys[0], ys[3]) == (HEIGHT, HEIGHT)
    assert 0 < ys[1] < ys[2] < HEIGHT


def test_where_nothing_is_known_the_line_is_broken() -> None:
    chart = draw("lag", "Lag", HOUR, [Series("Lag", [1, None, 3, 4])], told)
    alone, joined = points(chart.lines[0].path)
    assert [x for x, _ in joined] == [625, 875]
    assert alone[0][1] == alone[1][1]
    assert alone[0][0] < 125 < alone[1][0]
    assert len(chart.columns) == 3


def test_each_time_is_told_and_all_of_them_in_a_sentence() -> None:
    series = [Series("Produced", [1, 2, None, 4]), Series("Consumed", [None, 3, None, 1])]
    chart = draw("rates", "Rates", HOUR, series, told)
    assert [column.text for column in chart.columns] == [
        "Produced 1 m, Consumed \N{EN DASH}",
        "Produced 2 m, Consumed 3 m",
        "Produced 4 m, Consumed 1 m",
    ]
    assert chart.summary == (
        "Produced: at most 4 m at 14 Mar 12:03 UTC, last 4 m. Consumed: at most 3 m at 14 Mar 12:01 UTC, last 1 m."
    )


def test_marks_outside_are_left_out() -> None:
    marks = [Mark(NOON + timedelta(minutes=2), "inside", "/"), Mark(NOON - timedelta(minutes=1), "outside", "/")]
    chart = draw("lag", "Lag", HOUR, [Series("Lag", [1, 2, 3, 4])], told, marks)
    assert [(placed.x, placed.mark.text) for placed in chart.marks] == [("500", "inside")]


def test_a_chart_of_nothing_says_so() -> None:
    chart = draw("lag", "Lag", HOUR, [Series("Lag", [None] * 4)], told)
    assert chart.is_empty
    assert chart.summary == "Nothing is known of this time."


def test_a_sparkline_goes_from_edge_to_edge() -> None:
    [[first, *_, last]] = points(sparkline_path([5, 10, 0], 96, 24))
    assert (first[0], last) == (0, (96, 23))
    assert not re.search("nan|inf", sparkline_path([0, 0], 96, 24))


@pytest.mark.parametrize(
    ("asked", "key", "step", "resolution"),
    [
        ({}, "1h", timedelta(minutes=1), Resolution.MINUTE),
        ({"range": "6h"}, "6h", timedelta(minutes=2), Resolution.MINUTE),
        ({"range": "24h"}, "24h", timedelta(minutes=10), Resolution.MINUTE),
        ({"range": "7d"}, "7d", timedelta(hours=1), Resolution.HOUR),
        ({"range": "century"}, "1h", timedelta(minutes=1), Resolution.MINUTE),
        (
            {"range": "custom", "from": "2025-06-01T00:00", "to": "2026-03-01T00:00"},
            "custom",
            timedelta(days=2),
            Resolution.DAY,
        ),
    ],
)
def test_of_what_time_charts_are(asked, key, step, resolution) -> None:
    found = asked_range(asked, NOON + timedelta(seconds=30))
    assert (found.key, found.span.step, found.resolution, found.wrong) == (key, step, resolution, "")
    assert len(found.span.times) <= 201
    assert (found.span.begin - datetime(1970, 1, 1, tzinfo=UTC)) % step == timedelta(0)


@pytest.mark.parametrize(
    "asked",
    [
        {"from": "2026-03-14T13:00", "to": "2026-03-14T12:00"},
        {"from": "2020-01-01T00:00", "to": "2026-03-01T00:00"},
        {"from": "2026-99-99T00:00"},
        {"from": "0001-01-01T00:00+12:00"},
        {"from": "9999-12-31T23:59-12:00"},
        {},
    ],
)
def test_a_time_that_cannot_be_is_refused_and_the_last_hour_shown(asked) -> None:
    found = asked_range({"range": "custom", **asked}, NOON)
    assert found.key == "1h"
    assert found.wrong
