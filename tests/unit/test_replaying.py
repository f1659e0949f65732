"""How a replay goes about it: the ramp, when it stops, its pace."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from queueapi.errors import InvalidInput
from queueapi.replaying import ReplaySettings, Standing, sent_at_most, why_stop
from queuecore.testing.clock import ManualClock
from workers.operations.pacing import Pace


def standing(sent: int, succeeded: int = 0, failed: int = 0, skipped: int = 0, total: int = 1_000) -> Standing:
    return Standing(total, sent, succeeded, failed, skipped)


class TestRamp:
    settings = ReplaySettings(ramp=(1, 10, 100))

    @pytest.mark.parametrize(
        ("decided", "at_most"), [(0, 1), (1, 10), (9, 10), (10, 100), (99, 100), (100, 1_000), (500, 1_000)]
    )
    def test_each_step_waits_for_the_outcome_of_the_one_before(self, decided, at_most) -> None:
        assert sent_at_most(self.settings, standing(decided, succeeded=decided)) == at_most

    def test_there_are_never_more_than_there_are(self) -> None:
        assert sent_at_most(self.settings, standing(1, succeeded=1, total=5)) == 5

    def test_what_was_not_sent_has_no_outcome_to_wait_for(self) -> None:
        assert sent_at_most(self.settings, standing(0, skipped=1)) == 10

    def test_without_one_all_may_be_sent(self) -> None:
        assert sent_at_most(ReplaySettings(), standing(0)) == 1_000


class TestAbort:
    def test_few_failures_say_little(self) -> None:
        settings = ReplaySettings(abort_ratio=0.5, abort_min=10)
        assert not why_stop(settings, standing(500, failed=9))
        assert why_stop(settings, standing(500, failed=10)).startswith("10 of 10 letters failed again, more than 50%")

    def test_the_ratio_itself_is_allowed(self) -> None:
        settings = ReplaySettings(abort_ratio=0.5, abort_min=1)
        assert not why_stop(settings, standing(500, succeeded=20, failed=20))
        assert why_stop(settings, standing(500, succeeded=20, failed=21))

    def test_at_a_step_of_the_ramp_one_failure_is_enough(self) -> None:
        settings = ReplaySettings(ramp=(1, 10), abort_ratio=0.5, abort_min=10)
        assert why_stop(settings, standing(1, failed=1))
        assert not why_stop(settings, standing(10, succeeded=4, failed=5)), "one is still to be known"
        assert why_stop(settings, standing(10, succeeded=4, failed=6))

    def test_it_may_be_turned_off(self) -> None:
        assert not why_stop(ReplaySettings(ramp=(1,), abort_ratio=None), standing(1, failed=1))

    def test_it_says_what_is_left(self) -> None:
        assert "replay the 880 that were not sent" in why_stop(ReplaySettings(), standing(100, failed=100, skipped=20))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"rate_per_s": 0}, "rate_per_s is 0"),
        ({"rate_per_s": float("nan")}, "rate_per_s is nan"),
        ({"rate_per_s": float("inf")}, "rate_per_s is inf"),
        ({"ramp": (0,)}, "the ramp is 0"),
        ({"ramp": (10, 10)}, "the ramp is 10, 10"),
        ({"ramp": tuple(range(1, 22))}, "at most 20 steps"),
        ({"abort_ratio": 0}, "abort_ratio is 0"),
        ({"abort_ratio": 1.1}, "abort_ratio is 1.1"),
        ({"abort_min": 0}, "abort_min is 0"),
        ({"max_replays": 0}, "max_replays 0"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, told) -> None:
    with pytest.raises(InvalidInput, match=told):
        ReplaySettings(**wrong)


class TestPace:
    @given(
        some.floats(0.01, 100_000),
        some.integers(1, 300),
        some.lists(some.floats(0, 0.15), min_size=1, max_size=20),
    )
    def test_the_rate_is_met_whatever_sending_takes_as_long_as_it_can_be(self, rate, portions, busy_s) -> None:
        clock = ManualClock()
        pace = Pace(rate, clock)
        sent = 0
        for number in range(portions):
            clock.sleep(pace.delay_s())
            begun_at = clock.monotonic()
            assert sent <= rate * begun_at + 1e-6, "never faster"
            assert begun_at - sent / rate <= 0.15 + 1e-6, "hardly slower"
            count = pace.portion(5_000)
            pace.sent(count)
            sent += count
            clock.sleep(min(busy_s[number % len(busy_s)], count / rate))

    def test_who_fell_behind_does_not_hurry(self) -> None:
        clock = ManualClock()
        pace = Pace(10, clock)
        clock.advance(3_600)
        for _ in range(5):
            assert pace.delay_s() == 0
            pace.sent(2)
        assert pace.delay_s() == pytest.approx(0)
        pace.sent(2)
        assert pace.delay_s() == pytest.approx(0.2)

    def test_without_a_rate_nothing_is_waited_for(self) -> None:
        pace = Pace(None, ManualClock())
        pace.sent(1_000_000)
        assert pace.delay_s() == 0
        assert pace.portion(5_000) == 5_000
