"""Closing queues: from any thread, at any time, and nothing runs afterwards."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from queuecore import DeliveryContext, QueueError, Queues, Record, Subscription, SubscriptionCounts
from queuecore.queues.subscription import Subscription as SubscriptionClass
from queuecore.testing.waiting import DEADLINE_S

OpenQueues = Callable[..., Queues]


@pytest.fixture(autouse=True)
def orders(queues: Queues) -> None:
    queues.create("orders")


def ignore(record: Record, context: DeliveryContext) -> None: ...


def test_a_handler_may_close_the_queues(queues: Queues, open_embedded: OpenQueues) -> None:
    seen: list[bytes] = []

    def close(record: Record, context: DeliveryContext) -> None:
        seen.append(record.data)
        queues.close()

    queues.publish("orders", None, b"1").result(DEADLINE_S)
    subscription = queues.subscribe("orders", close, group="g")
    assert subscription.wait(DEADLINE_S)
    queues.close()
    assert subscription.counts == SubscriptionCounts(handled=1)
    again = open_embedded()
    again.publish("orders", None, b"2").result(DEADLINE_S)
    with again.subscribe("orders", lambda record, context: seen.append(record.data), group="g") as other:
        assert other.drain(DEADLINE_S)
    assert seen == [b"1", b"2"]


def test_who_closes_as_the_second_waits_for_the_first(queues: Queues) -> None:
    under_way, free = threading.Event(), threading.Event()

    def wait(record: Record, context: DeliveryContext) -> None:
        under_way.set()
        assert free.wait(DEADLINE_S)

    queues.publish("orders", None, b"1").result(DEADLINE_S)
    subscription = queues.subscribe("orders", wait, group="g")
    assert under_way.wait(DEADLINE_S)
    closers = [threading.Thread(target=queues.close) for _ in range(2)]
    for one in closers:
        one.start()
    closers[1].join(0.2)
    assert [one.is_alive() for one in closers] == [True, True]
    free.set()
    for one in closers:
        one.join(DEADLINE_S)
    assert not subscription.is_running
    assert subscription.counts == SubscriptionCounts(handled=1)


def test_a_subscription_that_starts_while_the_queues_close_does_not_outlive_them(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is being made when `close` comes is stopped by it; the next is refused."""
    starting, closing = threading.Event(), threading.Event()
    made: list[Subscription] = []
    make = SubscriptionClass.__init__

    def make_slowly(self: Subscription, *arguments: Any) -> None:
        starting.set()
        closing.wait(0.3)
        make(self, *arguments)

    monkeypatch.setattr(SubscriptionClass, "__init__", make_slowly)
    subscriber = threading.Thread(target=lambda: made.append(queues.subscribe("orders", ignore, group="g")))
    subscriber.start()
    assert starting.wait(DEADLINE_S)
    queues.close()
    subscriber.join(DEADLINE_S)
    [subscription] = made
    assert not subscription.is_running
    with pytest.raises(QueueError, match="closed"):
        queues.subscribe("orders", ignore, group="g")
