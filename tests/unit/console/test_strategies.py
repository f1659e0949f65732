"""Pictures of strategies agree with what the runtime does, as the documentation has it."""

from collections import Counter

import pytest

from console.strategies import PROCESSING_MEANS, SUBMIT_MEANS, attempts, processing_pictures, submit_pictures
from queuecore.processing.strategies import ProcessingStrategyType as Processing
from queuecore.submit.strategies import SubmitStrategyType as Submit


@pytest.mark.parametrize(
    ("submit", "processing", "handled"),
    [
        (Submit.BURST, Processing.SKIP_ALL_FAILURES, [1, 1, 1]),
        (Submit.BURST, Processing.RETRY_ALL, [2, 2, 2]),
        (Submit.BATCH, Processing.RETRY_ALL, [2, 2, 1]),
        (Submit.SEQUENTIAL, Processing.RETRY_ALL, [2, 1, 1]),
        (Submit.BURST, Processing.RETRY_FAILED, [2, 1, 1]),
        (Submit.SEQUENTIAL, Processing.RETRY_FAILED_AND_TIMED_OUT, [2, 1, 1]),
        (Submit.SEQUENTIAL_BY_ORIGINATOR, Processing.RETRY_TIMED_OUT, [1, 1, 1]),
    ],
)
def test_how_often_each_message_is_handled(submit, processing, handled) -> None:
    counts = Counter(attempt.message for attempt in attempts(submit, processing))
    assert [counts[number] for number in range(3)] == handled


def test_what_is_behind_a_message_that_is_tried_again_waits() -> None:
    slots = {attempt.message: attempt.slot for attempt in attempts(Submit.SEQUENTIAL, Processing.RETRY_FAILED)}
    assert slots == {0: 1, 1: 2, 2: 3}
    lanes = {
        attempt.message: attempt.slot for attempt in attempts(Submit.SEQUENTIAL_BY_TENANT, Processing.RETRY_FAILED)
    }
    assert lanes == {0: 1, 1: 2, 2: 0}


def test_every_strategy_has_a_picture_and_one_is_the_queues() -> None:
    assert (set(SUBMIT_MEANS), set(PROCESSING_MEANS)) == (set(Submit), set(Processing))
    ways = submit_pictures(Submit.BATCH, Processing.RETRY_ALL)
    assert [picture.title for picture in ways if picture.is_current] == ["BATCH"]
    [own] = [one for one in processing_pictures(Submit.BURST, Processing.RETRY_TIMED_OUT) if one.is_current]
    assert own.told == "A1 is given up in turn 1; A2 succeeds in turn 1; B1 succeeds in turn 1."
