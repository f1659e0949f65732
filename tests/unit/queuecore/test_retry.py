"""RETRY_FAILED."""

import pytest

from queuecore.processing import RetryFailed


@pytest.mark.parametrize(
    ("policy", "pauses"),
    [
        (RetryFailed(), [200, 400, 800, None]),
        (RetryFailed(retries=0), [None]),
        (RetryFailed(retries=5, pause_ms=1_000, max_pause_ms=3_000), [1_000, 2_000, 3_000, 3_000, 3_000, None]),
        (RetryFailed(retries=2, pause_ms=0), [0, 0, None]),
    ],
    ids=str,
)
def test_pauses_double_up_to_the_most_and_then_it_is_given_up(policy: RetryFailed, pauses: list[int | None]) -> None:
    state = policy.state()
    assert [state.pause_before_next_ms() for _ in pauses] == pauses
    assert state.failures == len(pauses)


def test_each_message_is_counted_by_itself() -> None:
    policy = RetryFailed(retries=1)
    first, second = policy.state(), policy.state()
    assert (first.pause_before_next_ms(), first.pause_before_next_ms()) == (200, None)
    assert second.pause_before_next_ms() == 200
