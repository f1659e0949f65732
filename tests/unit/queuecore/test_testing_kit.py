"""The kit itself."""

import pytest

from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import wait_until


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(now_ms=1_000)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 0.0)
    clock.sleep(1.5)
    clock.advance(0.5)
    assert (clock.now_ms(), clock.monotonic()) == (3_000, 2.0)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_waiting_gives_the_first_true_value() -> None:
    values = iter([0, "", "found", "later"])
    assert wait_until(lambda: next(values)) == "found"


def test_waiting_in_vain_says_for_what() -> None:
    def never_true() -> bool:
        return False

    with pytest.raises(AssertionError, match=r"still not true after 0 s: .*never_true"):
        wait_until(never_true, timeout=0)
