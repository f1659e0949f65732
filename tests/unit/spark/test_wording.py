"""Numbers as the sentences say them."""

import pytest

from workers.spark.transforms.wording import duration, number, per_second


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (999, "999"), (12_400, "12,400"), (1_000_000, "1,000,000")])
def test_numbers(value: int, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (4.9, "4 s"), (119, "119 s"), (240, "4 min"), (7_199, "119 min"), (7_200, "2 h"), (200_000, "2 d")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.0, "0/s"), (210.4, "210/s"), (12_400.0, "12,400/s"), (0.5, "30/min"), (0.01, "36/h"), (1e-6, "less than 1/h")],
)
def test_rates(rate: float, text: str) -> None:
    assert per_second(rate) == text
