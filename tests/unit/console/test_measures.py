"""Lengths of time and sizes: what somebody has set is told exactly, what was measured about so."""

import pytest

from console.measured_fields import BYTES, MILLISECONDS, exactly
from console.templatetags.alerts import lasting
from console.templatetags.console import exact_size, milliseconds_long, size
from console.templatetags.isolation import setting
from console.templatetags.tenants import kept_for


@pytest.mark.parametrize(
    ("value_ms", "told"),
    [
        (0, "0 ms"),
        (1_500, "1,500 ms"),
        (90_000, "90 s"),
        (5_400_000, "90 min"),
        (86_400_000, "1 d"),
        (129_600_000, "36 h"),
        (1_234_567_000, "1,234,567 s"),
    ],
)
def test_a_setting_is_told_in_the_largest_unit_in_which_it_is_whole(value_ms, told) -> None:
    assert exactly(value_ms, MILLISECONDS) == told
    assert milliseconds_long(value_ms) == kept_for(value_ms) == setting(value_ms, "retention_ms") == told


def test_no_two_settings_are_told_alike() -> None:
    values = [*range(1, 4_000), *(number * 1_000 for number in range(4, 200_000, 7))]
    assert len({milliseconds_long(value) for value in values}) == len(values)
    assert exact_size(1024**3 + 1) != exact_size(1024**3)


def test_a_rule_says_for_how_long_something_has_to_hold() -> None:
    assert [lasting(seconds) for seconds in (0, 90, 300)] == ["at once", "for 90 s", "for 5 min"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "\N{EN DASH}"),
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_536, "1.5 KiB"),
        (5 * 1024**2, "5.0 MiB"),
        (3 * 1024**3 // 2, "1.5 GiB"),
        (2 * 1024**4, "2.0 TiB"),
        (3_000 * 1024**4, "3,000.0 TiB"),
    ],
)
def test_sizes_are_told_up_to_tebibytes(value, told) -> None:
    assert size(value) == told


@pytest.mark.parametrize(("value", "told"), [(50 * 1024**2, "50 MiB"), (1536 * 1024**2, "1,536 MiB"), (7, "7 B")])
def test_sizes_that_were_set_are_told_exactly(value, told) -> None:
    assert exactly(value, BYTES) == exact_size(value) == setting(value, "segment_bytes") == told
