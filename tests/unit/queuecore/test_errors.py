"""The error tree: stable codes, and nothing lost between processes."""

import pickle
import re

import pytest

from queuecore import errors
from queuecore.errors import (
    PartitionFull,
    ProviderUnavailable,
    QueueError,
    QueueOverloaded,
    StateUndone,
    StoreUnavailable,
    TooManyRequests,
    TransactionAborted,
)

TREE = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, QueueError)]


@pytest.mark.parametrize("kind", TREE)
def test_an_error_pickles_with_all_fields(kind: type[QueueError]) -> None:
    error = kind("what happened; what to do", topic="tb_core", beginning=7)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(copy) is kind
    assert (str(copy), copy.message, copy.fields) == (str(error), error.message, {"topic": "tb_core", "beginning": 7})
    assert (copy.code, copy.retryable) == (kind.code, kind.retryable)


def test_codes_are_distinct_and_few_errors_are_worth_a_retry() -> None:
    assert len({kind.code for kind in TREE}) == len(TREE)
    assert [kind for kind in TREE if kind.retryable] == [
        PartitionFull,
        QueueOverloaded,
        StoreUnavailable,
        TooManyRequests,
        TransactionAborted,
        StateUndone,
        ProviderUnavailable,
    ]


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert set(drawn) == {kind.__name__ for kind in TREE} - {QueueError.__name__}


def test_who_is_refused_for_a_quota_is_told_when_to_come_again() -> None:
    told = pickle.loads(pickle.dumps(QueueOverloaded("wait", retry_after_s=2.5)))  # noqa: S301
    assert told.retry_after_s == 2.5
    assert QueueOverloaded("wait").retry_after_s == 1.0
