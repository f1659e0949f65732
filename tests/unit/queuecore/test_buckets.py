"""A token bucket: what it promises to whoever is behind it, and to whoever comes."""

import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.buckets import TokenBucket

RATES = st.floats(0.1, 10_000)
ARRIVALS = st.lists(st.tuples(st.floats(0, 30), st.integers(1, 500)), min_size=1, max_size=60)


@given(RATES, st.floats(1, 10_000), ARRIVALS)
def test_in_no_stretch_of_time_passes_more_than_rate_and_burst(rate, capacity, arrivals) -> None:
    bucket = TokenBucket(rate, capacity, 0)
    times = accumulate(pause for pause, _ in arrivals)
    passed = [(now, amount) for now, (_, amount) in zip(times, arrivals, strict=True) if bucket.take(amount, now)]
    for first, (begun, _) in enumerate(passed):
        total = 0
        for now, amount in passed[first:]:
            total += amount
            assert total <= (rate * (now - begun) + capacity) * (1 + 1e-9)


@given(RATES, st.floats(500, 10_000), ARRIVALS)
def test_who_waits_as_long_as_told_passes(rate, capacity, arrivals) -> None:
    bucket, now = TokenBucket(rate, capacity, 0), 0.0
    for pause, amount in arrivals:
        now += pause
        now += bucket.wait_s(amount, now) + 1e-6
        assert bucket.take(amount, now)


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 50), st.integers(1, 100)), min_size=1, max_size=40))
def test_a_change_of_the_rate_gives_nobody_a_burst_again(steps) -> None:
    bucket, now, allowed, passed = TokenBucket(1, 10, 0), 0.0, 10.0, 0
    rate = 1.0
    for pause, amount, next_rate in steps:
        now, allowed = now + pause, allowed + pause * rate
        if bucket.take(amount, now):
            passed += amount
        assert passed <= allowed * (1 + 1e-9)
        rate = float(next_rate)
        bucket.change(rate, 10, now)


def test_a_burst_then_the_rate() -> None:
    bucket = TokenBucket(10, 20, 100)
    assert [bucket.take(1, 100) for _ in range(21)] == [True] * 20 + [False]
    assert bucket.wait_s(1, 100) == pytest.approx(0.1)
    assert bucket.take(1, 100.5)
    assert bucket.wait_s(5, 100.5) == pytest.approx(0.1)


def test_what_it_never_holds_is_waited_for_in_vain() -> None:
    bucket = TokenBucket(10, 20, 0)
    assert bucket.wait_s(21, 1000) == math.inf
    assert not bucket.take(21, 1000)
    assert bucket.take(20, 1000)


def test_a_refusal_takes_nothing() -> None:
    bucket = TokenBucket(1, 5, 0)
    assert not bucket.take(6, 0)
    assert bucket.take(5, 0)


def test_a_smaller_capacity_holds_at_once() -> None:
    bucket = TokenBucket(10, 100, 0)
    bucket.change(10, 5, 0)
    assert not bucket.take(6, 0)
    assert bucket.take(5, 0)


@pytest.mark.parametrize(("rate", "capacity"), [(0, 1), (1, 0), (-1, 1)])
def test_one_that_lets_nothing_through_is_refused(rate, capacity) -> None:
    with pytest.raises(ValueError, match="lets nothing through"):
        TokenBucket(rate, capacity, 0)
