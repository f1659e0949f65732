"""Nobody waits for a call that hangs for longer than the connection allows."""

import threading

import pytest

from queuecore.errors import ProviderUnavailable
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.patience import Caller
from queuecore.providers.options import KafkaOptions
from queuecore.testing.waiting import DEADLINE_S, wait_until

HASTY = Connection("localhost:9092", KafkaOptions(request_timeout_ms=10))


def fail() -> None:
    raise RuntimeError("refused")


def test_a_call_is_answered_with_what_it_gives_or_raises() -> None:
    caller = Caller(Connection("localhost:9092"))
    assert [caller.call(threading.get_ident) for _ in range(2)] != [threading.get_ident()] * 2
    with pytest.raises(RuntimeError, match="refused"):
        caller.call(fail)
    assert caller.call(lambda: 7) == 7
    caller.end(lambda: None)


def test_while_a_call_hangs_no_other_is_made() -> None:
    caller, over, made = Caller(HASTY), threading.Event(), threading.Event()
    with pytest.raises(ProviderUnavailable, match="does not answer"):
        caller.call(lambda: over.wait(DEADLINE_S))
    assert not caller.is_free()
    with pytest.raises(ProviderUnavailable):
        caller.call(made.set)
    over.set()
    wait_until(caller.is_free)
    assert not made.is_set()
    caller.end(lambda: None)


def test_the_last_call_is_made_when_the_one_that_hangs_is_back() -> None:
    caller, over, closed = Caller(HASTY), threading.Event(), threading.Event()
    with pytest.raises(ProviderUnavailable):
        caller.call(lambda: over.wait(DEADLINE_S))
    caller.end(closed.set)
    assert not closed.is_set()
    over.set()
    assert closed.wait(DEADLINE_S)
