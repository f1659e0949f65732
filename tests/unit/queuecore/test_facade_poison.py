"""Messages and handlers that go wrong in unusual ways: none ends a subscription."""

import asyncio
import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from queuecore import (
    ConfigurationError,
    Delivery,
    DeliveryContext,
    PayloadMissing,
    ProcessingStrategy,
    ProcessingStrategyType,
    ProducerOptions,
    QueueError,
    Queues,
    Record,
    SubscriptionCounts,
)
from queuecore.consuming.delivering import Deliverer
from queuecore.providers.memory.provider import MemoryProvider
from queuecore.testing.waiting import DEADLINE_S

OpenQueues = Callable[..., Queues]
NO_RETRY = ProcessingStrategy(ProcessingStrategyType.SKIP_ALL_FAILURES)
# Headers and framing of the messages below.
ROOM = 200


@pytest.fixture
def limit_bytes() -> int:
    return ProducerOptions().max_request_size


@pytest.fixture(autouse=True)
def orders(queues: Queues) -> None:
    queues.create("orders")


def publish(queues: Queues, *data: bytes, **options: Any) -> None:
    for stored in [queues.publish("orders", "one", one, **options) for one in data]:
        stored.result(DEADLINE_S)


def fail_large(record: Record, context: DeliveryContext) -> None:
    if record.size > 1_000:
        raise ValueError("no room for it" * 100)


class TestLettersThatAreTooLarge:
    @pytest.mark.parametrize("delivery", Delivery)
    def test_without_its_stack_trace_it_may_fit(self, queues: Queues, limit_bytes: int, delivery: Delivery) -> None:
        data = b"x" * (limit_bytes - 1_800)
        publish(queues, data, b"next")
        with queues.subscribe("orders", fail_large, group="g", delivery=delivery, processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        assert subscription.counts == SubscriptionCounts(handled=1, dead_lettered=1)
        [letter] = queues.dead_letters("orders")
        assert (letter.message.data, letter.is_complete, letter.story.stack_trace) == (data, True, "")
        assert letter.story.exception_message == ("no room for it" * 100)[:200]

    @pytest.mark.parametrize("delivery", Delivery)
    def test_else_its_payload_is_stored_apart(self, queues: Queues, limit_bytes: int, delivery: Delivery) -> None:
        data = b"x" * (limit_bytes - ROOM)
        publish(queues, data, b"next")
        with queues.subscribe("orders", fail_large, group="g", delivery=delivery, processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        assert subscription.counts == SubscriptionCounts(handled=1, dead_lettered=1)
        [letter] = queues.dead_letters("orders")
        assert (letter.message.key, letter.message.data, letter.is_complete) == (b"one", data, True)
        assert letter.record.data == b""
        assert letter.story.offset == 0

    def test_so_are_its_headers(self, queues: Queues, limit_bytes: int) -> None:
        headers = {"large": b"y" * (limit_bytes - ROOM)}
        publish(queues, b"x", headers=headers)
        with queues.subscribe("orders", fail_all, group="g", processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        [letter] = queues.dead_letters("orders")
        assert "large" not in letter.record.headers
        assert letter.message.headers.items() > headers.items()
        assert (letter.message.data, letter.story.exception_message) == (b"x", "no")

    def test_it_can_be_replayed_unless_its_payload_is_gone(self, queues: Queues, limit_bytes: int) -> None:
        publish(queues, b"x" * (limit_bytes - ROOM - 100))
        with queues.subscribe("orders", fail_large, group="g", processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        [letter] = queues.dead_letters("orders")
        queues.replay(letter).result(DEADLINE_S)
        queues.provider.admin().delete_topics(["orders.dlq.payloads"])
        [letter] = queues.dead_letters("orders")
        assert (letter.message.data, letter.is_complete) == (b"", False)
        with pytest.raises(PayloadMissing, match=r"orders\.0\[0\]@0"):
            queues.replay(letter)

    @pytest.mark.parametrize("delivery", Delivery)
    def test_so_does_one_whose_handler_sent_too_much(
        self, queues: Queues, limit_bytes: int, delivery: Delivery
    ) -> None:
        def forward(record: Record, context: DeliveryContext) -> None:
            context.send("orders2", record.key, record.data, {**record.headers, "more": b"y" * 300})

        queues.create("orders2")
        publish(queues, b"x" * (limit_bytes - ROOM), b"next")
        with queues.subscribe("orders", forward, group="g", delivery=delivery) as subscription:
            assert subscription.drain(DEADLINE_S)
        assert subscription.counts == SubscriptionCounts(handled=1, dead_lettered=1)


def fail_all(record: Record, context: DeliveryContext) -> None:
    raise ValueError("no")


class TestWhatAHandlerRaises:
    @pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, pytest.fail.Exception])
    def test_whatever_it_is_the_message_has_failed(self, queues: Queues, error: type[BaseException]) -> None:
        def leave(record: Record, context: DeliveryContext) -> None:
            if record.data == b"bad":
                raise error("bye")

        publish(queues, b"bad", b"good")
        with queues.subscribe("orders", leave, group="g", processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        assert subscription.counts == SubscriptionCounts(handled=1, dead_lettered=1)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_the_death_of_its_thread_ends_the_subscription_with_an_error(
        self, queues: Queues, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
    ) -> None:
        def die(*_: object) -> None:
            raise error("a defect of ours")

        monkeypatch.setattr(Deliverer, "work_on", die)
        publish(queues, b"x")
        subscription = queues.subscribe("orders", fail_all, group="g")
        with pytest.raises((QueueError, RuntimeError), match="a defect of ours"):
            subscription.wait(DEADLINE_S)
        assert not subscription.is_running


async def later(record: Record, context: DeliveryContext) -> None: ...


async def later_and_worse(record: Record, context: DeliveryContext) -> None:
    raise ValueError("no")


async def later_and_more(record: Record, context: DeliveryContext) -> Any:
    yield


def bit_by_bit(record: Record, context: DeliveryContext) -> Any:
    yield


class Later:
    async def __call__(self, record: Record, context: DeliveryContext) -> None: ...

    async def method(self, record: Record, context: DeliveryContext) -> None: ...


class TestWhatCannotBeAHandler:
    @pytest.mark.parametrize(
        "handler",
        [None, "handle", later_and_more, bit_by_bit, functools.partial(bit_by_bit, b"")],
    )
    def test_it_is_refused_at_once(self, queues: Queues, handler: Any) -> None:
        with pytest.raises(ConfigurationError, match="the handler"):
            queues.subscribe("orders", handler, group="g")

    @pytest.mark.parametrize(
        "handler",
        [print, Queues, functools.partial(fail_all), [].append, later, Later(), Later().method],
    )
    def test_what_can_be_called_is_not(self, queues: Queues, handler: Any) -> None:
        queues.subscribe("orders", handler, group="g").stop()

    @pytest.mark.parametrize("handler", [later, Later(), Later().method, functools.partial(later)])
    def test_one_that_is_to_be_awaited_is(self, queues: Queues, handler: Any) -> None:
        publish(queues, b"x")
        with queues.subscribe("orders", handler, group="g", processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        assert subscription.counts == SubscriptionCounts(handled=1)

    def test_and_it_may_fail_as_others_do(self, queues: Queues) -> None:
        publish(queues, b"x")
        with queues.subscribe("orders", later_and_worse, group="g", processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        [letter] = queues.dead_letters("orders")
        assert letter.story.exception_message == "no"

    def test_a_plain_one_that_returns_a_promise_has_failed(self, queues: Queues) -> None:
        publish(queues, b"x")
        promising: Any = lambda record, context: later(record, context)  # noqa: E731
        with queues.subscribe("orders", promising, group="g", processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        [letter] = queues.dead_letters("orders")
        assert "nobody awaits" in letter.story.exception_message


def test_groups_and_queues_of_similar_names_do_not_fence_each_other(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a-b` reads `c`, `a` reads `b-c`: put together with dashes, both are `a-b-c`."""
    ids: list[str] = []
    make = type(queues.provider).transactional_producer

    def note(self: MemoryProvider, transactional_id: str) -> Any:
        ids.append(transactional_id)
        return make(self, transactional_id)

    monkeypatch.setattr(type(queues.provider), "transactional_producer", note)
    for queue in ("b-c", "c"):
        queues.create(queue)
        queues.publish(queue, None, b"x").result(DEADLINE_S)
    done = threading.Barrier(2)
    handlers: Any = lambda record, context: done.wait(DEADLINE_S)  # noqa: E731
    subscriptions = [
        queues.subscribe(queue, handlers, group=group, delivery="exactly_once")
        for group, queue in (("a", "b-c"), ("a-b", "c"))
    ]
    assert all(one.drain(DEADLINE_S) for one in subscriptions)
    assert len(set(ids)) == 2
    assert all(a != b for a, b in itertools.pairwise(sorted(ids)))
