"""A partition's figures, from points in order of time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.traces import every, point
from workers.spark.transforms.figures import (
    LONGEST_LAG_S,
    consumed_per_s,
    drain_eta_s,
    lag_seconds,
    oldest_age_s,
    produced_per_s,
    recent,
    trend_per_s,
)
from workers.spark.transforms.points import Point


class TestSeconds:
    def test_interpolated_between_the_samples_around_the_commit(self) -> None:
        assert lag_seconds(every(10, [(0, 0), (100, 0), (200, 150)])) == 5.0

    def test_nothing_waits(self) -> None:
        assert lag_seconds(every(10, [(100, 50), (100, 100)])) == 0.0

    def test_nor_does_it_after_a_commit_beyond_the_end(self) -> None:
        assert lag_seconds([point(0, 3, 500)]) == 0.0

    def test_one_sample_does_not_tell(self) -> None:
        assert lag_seconds([point(0, 100, 50)]) is None

    def test_an_idle_time_before_the_next_message_does_not_count(self) -> None:
        """Caught up, idle for a minute, then one message: it waits since it came."""
        points = [*every(10, [(100, 100)] * 7), point(70, 101, 100)]
        assert lag_seconds(points) == 10.0

    def test_on_an_idle_topic_it_grows_with_time(self) -> None:
        points = every(10, [(100, 100), (150, 100), *[(150, 100)] * 6])
        assert [lag_seconds(points[: count + 1]) for count in range(1, 8)] == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0]

    def test_older_than_the_samples_as_messages_came_before(self) -> None:
        assert lag_seconds(every(10, [(1000, 800), (1100, 800)])) == 30.0

    def test_older_than_the_samples_on_an_idle_topic_at_least_so_long(self) -> None:
        assert lag_seconds(every(10, [(1000, 800)] * 4)) == 30.0

    def test_a_trickle_does_not_tell_of_years(self) -> None:
        assert lag_seconds(every(10, [(10**9, 0), (10**9 + 1, 0)])) == 10 + LONGEST_LAG_S

    @given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1)), min_size=2, max_size=40))
    def test_never_bounces(self, steps: list[tuple[int, float]]) -> None:
        """From one sample to the next it grows by no more than the time between them, while the group stands still or
        goes on."""
        end, committed, points = 0, 0, [point(0, 0, 0)]
        for index, (produced, share) in enumerate(steps, start=1):
            end += produced
            committed += int((end - committed) * share)
            points.append(point(5 * index, end, committed))
        behind = [lag_seconds(points, 0, index) or 0.0 for index in range(len(points))]
        assert all(after - before <= 5 + 1e-9 for before, after in pairwise(behind))


class TestOldest:
    def test_the_message_behind_the_commit(self) -> None:
        points = [*every(10, [(100, 100)] * 7), point(70, 101, 100), point(80, 101, 100)]
        assert oldest_age_s(points) == 10.0, "it is stored when the end is seen behind it"

    def test_nothing_waits(self) -> None:
        assert oldest_age_s(every(10, [(100, 50), (100, 100)])) is None

    def test_what_was_removed_does_not_wait(self) -> None:
        points = [point(0, 50, 0), point(10, 150, 0, beginning=99)]
        assert oldest_age_s(points) == 5.0

    def test_nor_where_all_were(self) -> None:
        assert oldest_age_s([point(0, 50, 0), point(10, 150, 0, beginning=150)]) is None


class TestRates:
    def test_between_the_oldest_and_the_newest(self) -> None:
        points = every(5, [(100, 40), (130, 50), (200, 80)])
        assert (produced_per_s(points), consumed_per_s(points)) == (10.0, 4.0)

    def test_one_sample_has_none(self) -> None:
        points = [point(0, 100, 40)]
        assert (produced_per_s(points), consumed_per_s(points), trend_per_s(points)) == (None, None, None)

    def test_after_a_reset_backwards_from_there_on(self) -> None:
        points = every(10, [(100, 90), (110, 95), (120, 10), (130, 60)])
        assert (produced_per_s(points), consumed_per_s(points)) == (1.0, 5.0)

    def test_right_after_a_reset_none(self) -> None:
        points = every(10, [(100, 90), (110, None), (120, 95), (130, 10)])
        assert (consumed_per_s(points), trend_per_s(points)) == (None, None)

    def test_a_reset_forward_counts_what_it_skips(self) -> None:
        assert consumed_per_s(every(10, [(1000, 0), (1000, 1000)])) == 100.0

    def test_the_first_commit_has_no_rate_yet(self) -> None:
        assert consumed_per_s(every(10, [(100, None), (200, 50)])) is None

    def test_recent(self) -> None:
        points = every(10, [(0, 0)] * 10)
        assert recent(points, 30) == points[-4:]


class TestTrend:
    def test_by_how_much_the_lag_grows(self) -> None:
        assert trend_per_s(every(10, [(0, 0), (100, 50), (200, 100)])) == 5.0

    def test_commits_in_steps_do_not_hide_it(self) -> None:
        """10/s come and 10/s go, committed every 20 s: the last sample is right before a commit."""
        points = every(5, [(50 * index, 200 * (index // 4)) for index in range(40)])
        trend = trend_per_s(points)
        assert trend is not None
        assert abs(trend) < 0.5

    def test_drained_at_this_pace(self) -> None:
        assert drain_eta_s(600, -2.0) == 300.0

    @pytest.mark.parametrize("trend", [None, 0.0, 3.0, -1e-9])
    def test_never_drained(self, trend: float | None) -> None:
        assert drain_eta_s(600, trend) is None

    def test_nothing_to_drain(self) -> None:
        assert drain_eta_s(0, None) == 0.0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_the_oldest_is_never_older_than_the_position(steps: list[tuple[int, int]]) -> None:
    end, committed, points = 0, 0, list[Point]()
    for index, (produced, consumed) in enumerate(steps):
        end += produced
        committed = min(end, committed + consumed)
        points.append(point(index, end, committed))
    age, behind = oldest_age_s(points), lag_seconds(points)
    assert age is None or (behind is not None and age <= behind + 1e-9)
