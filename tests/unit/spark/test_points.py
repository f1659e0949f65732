"""The present life of a partition: what happened before its topic was made anew says nothing of it."""

from tests.unit.spark.traces import every, point
from workers.spark.transforms.points import lives


def test_a_commit_beyond_the_end_is_no_lag() -> None:
    assert point(0, 100, 140).lag == 0


def test_without_a_commit_all_that_is_stored_waits() -> None:
    assert point(0, 100, None, beginning=30).lag == 70


def test_a_group_is_as_far_behind_as_its_commit_is_even_where_messages_were_removed() -> None:
    assert point(0, 100, 10, beginning=30).lag == 90, "as kafka-consumer-groups has it"


def test_one_life() -> None:
    points = every(5, [(10, 0), (20, 10), (20, 20)])
    assert lives(points, 30) == [points]


def test_an_end_that_went_back_begins_another_life() -> None:
    points = every(5, [(500, 400), (510, 420), (3, 420), (5, 2)])
    assert lives(points, 30) == [points[:2], points[2:]]


def test_so_does_another_topic_or_group() -> None:
    points = [point(0, 10, 5), point(5, 20, 5, topic="t2.0"), point(10, 30, 5, topic="t2.0", group="g2")]
    assert lives(points, 30) == [[one] for one in points]


def test_a_group_that_goes_back_lives_on() -> None:
    points = every(5, [(500, 400), (510, 100), (510, None)])
    assert lives(points, 30) == [points]


def test_what_was_delivered_twice_counts_once() -> None:
    points = every(5, [(10, 0), (20, 10)])
    assert lives([points[0], points[0], points[1], points[1]], 30) == [points]


def test_of_one_moment_the_furthest_holds() -> None:
    assert lives([point(0, 10, 5), point(0, 12, 5)], 30) == [[point(0, 12, 5)]]


def test_a_slow_clock_does_not_make_a_topic_anew() -> None:
    """The other's clock is 3 s behind: what it says now is older than what is known."""
    steady = [point(0, 100, 90), point(5, 150, 140), point(10, 200, 190)]
    late = [point(5.5, 130, 110, service="other"), point(10.5, 195, 180, service="other")]
    found = lives(sorted([*steady, *late]), 30)
    assert found == [steady]


def test_nor_does_it_send_a_group_back() -> None:
    found = lives([point(0, 100, 90), point(1, 100, 80, service="other"), point(5, 100, 95)], 30)
    assert found == [[point(0, 100, 90), point(5, 100, 95)]]


def test_who_saw_the_topic_before_knows_that_it_is_new() -> None:
    points = [
        point(0, 500, 400), point(1, 500, 400, service="other"), point(5, 3, 400), point(6, 4, 0, service="other"),
        point(10, 5, 0),
    ]  # fmt: skip
    assert lives(points, 30)[-1] == points[3:], "one sample later, as it might have been a clock"


def test_beyond_what_clocks_may_differ_another_service_is_believed() -> None:
    points = [point(0, 500, 400), point(31, 3, 0, service="other")]
    assert lives(points, 30) == [[points[0]], [points[1]]]
