"""At most, at least, exactly once: when an offset is committed, and what becomes of what a handler sends.

What a crash makes of it is in `tests/reliability/test_delivery_crash.py`.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing

import pytest

from queuecore import (
    ConsumerOptions,
    Delivery,
    DeliveryContext,
    NotOwner,
    NotSupported,
    ProcessingStrategy,
    ProcessingStrategyType,
    ProducerOptions,
    QueueError,
    Queues,
    Record,
    SubscriptionCounts,
    UnknownQueue,
)
from queuecore.consuming.desk import Finished
from queuecore.consuming.settling import AtMostOnce, ExactlyOnce
from queuecore.providers.base import Capabilities
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition

OpenQueues = Callable[..., Queues]

PLACE = ProviderPartition("orders.0", 0)
ALL = list(Delivery)
RETRY_ONCE = ProcessingStrategy(ProcessingStrategyType.RETRY_FAILED, retries=1, pause_ms=0)
RETRY_OFTEN = ProcessingStrategy(ProcessingStrategyType.RETRY_FAILED, retries=5, pause_ms=0)
NO_RETRY = ProcessingStrategy(ProcessingStrategyType.SKIP_ALL_FAILURES)
SAFE = [Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE]


@pytest.fixture(autouse=True)
def orders(queues: Queues) -> None:
    queues.create("orders")
    queues.create("invoices")


def publish(queues: Queues, *data: str) -> None:
    for stored in [queues.publish("orders", "one", data_.encode()) for data_ in data]:
        stored.result(DEADLINE_S)


def committed(queues: Queues) -> int:
    return queues.provider.admin().committed_offsets({"g": [PLACE]})["g"].get(PLACE, 0)


def invoices(queues: Queues) -> list[str]:
    with closing(queues.provider.reader()) as reader:
        return [record.data.decode() for record in reader.read(ProviderPartition("invoices.0", 0), 0, 1_000)]


def bill(record: Record, context: DeliveryContext) -> None:
    context.send("invoices", record.key, b"invoice " + record.data)


@pytest.mark.parametrize("delivery", ALL)
def test_without_a_crash_all_three_do_the_same(queues: Queues, delivery: Delivery) -> None:
    publish(queues, "1", "2", "3")
    with queues.subscribe("orders", bill, group="g", delivery=delivery) as subscription:
        assert subscription.drain()
        assert subscription.delivery is delivery
        assert subscription.counts == SubscriptionCounts(handled=3)
    assert invoices(queues) == ["invoice 1", "invoice 2", "invoice 3"]
    assert committed(queues) == 3


def test_what_was_committed_first_is_behind_until_it_is_settled(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling, may_settle, settle = threading.Event(), threading.Event(), AtMostOnce.settle_outside

    def settle_at_leave(self: AtMostOnce, finished: Sequence[Finished]) -> None:
        settling.set()
        assert may_settle.wait(DEADLINE_S)
        settle(self, finished)

    monkeypatch.setattr(AtMostOnce, "settle_outside", settle_at_leave)
    publish(queues, "1")
    with queues.subscribe("orders", bill, group="g", delivery=Delivery.AT_MOST_ONCE) as subscription:
        assert settling.wait(DEADLINE_S)
        assert committed(queues) == 1
        assert not subscription.drain(timeout_s=0)
        may_settle.set()
        assert subscription.drain()
        assert subscription.counts == SubscriptionCounts(handled=1)


@pytest.mark.parametrize("delivery", ALL)
def test_a_name_will_do(queues: Queues, delivery: Delivery) -> None:
    with queues.subscribe("orders", bill, group="g", delivery=delivery.value) as subscription:
        assert subscription.delivery is delivery


@pytest.mark.parametrize("delivery", ALL)
def test_at_most_once_commits_before_and_the_others_after(queues: Queues, delivery: Delivery) -> None:
    seen: list[int] = []
    publish(queues, "1", "2")
    with queues.subscribe(
        "orders", lambda record, context: seen.append(committed(queues)), group="g", delivery=delivery
    ) as subscription:
        assert subscription.drain()
    assert seen == ([2, 2] if delivery is Delivery.AT_MOST_ONCE else [0, 0])
    assert committed(queues) == 2


class TestSending:
    @pytest.mark.parametrize("delivery", ALL)
    def test_it_goes_to_the_entitys_partition_with_its_headers(self, queues: Queues, delivery: Delivery) -> None:
        queues.create("parcels", 4)
        expected = queues.publish("parcels", "somebody", b"first").result(DEADLINE_S)

        def ship(record: Record, context: DeliveryContext) -> None:
            context.send("parcels", "somebody", b"second", {"by": b"train"})

        publish(queues, "1")
        with queues.subscribe("orders", ship, group="g", delivery=delivery) as subscription:
            assert subscription.drain()
        with closing(queues.provider.reader()) as reader:
            [_, second] = reader.read(ProviderPartition(expected.topic, expected.partition), 0, 10)
        assert (second.data, second.key, second.headers["by"]) == (b"second", b"somebody", b"train")
        assert {"producerId", "ts"} <= second.headers.keys()

    @pytest.mark.parametrize("delivery", SAFE)
    def test_of_several_attempts_only_the_one_that_succeeds_sends(self, queues: Queues, delivery: Delivery) -> None:
        def bill_and_fail(record: Record, context: DeliveryContext) -> None:
            bill(record, context)
            if context.attempt < 3:
                raise ValueError("not yet")

        publish(queues, "1")
        with queues.subscribe(
            "orders", bill_and_fail, group="g", delivery=delivery, processing=RETRY_OFTEN
        ) as subscription:
            assert subscription.drain()
        assert invoices(queues) == ["invoice 1"]

    @pytest.mark.parametrize("delivery", SAFE)
    def test_what_was_sent_by_a_delivery_that_was_postponed_or_unsent_is_not(
        self, queues: Queues, delivery: Delivery
    ) -> None:
        def hesitate(record: Record, context: DeliveryContext) -> None:
            bill(record, context)
            if context.attempt == 1:
                context.postpone(0.0)
            elif record.data == b"2":
                context.unsend()

        publish(queues, "1", "2")
        with queues.subscribe("orders", hesitate, group="g", delivery=delivery) as subscription:
            assert subscription.drain()
        assert invoices(queues) == ["invoice 1"]

    @pytest.mark.parametrize("delivery", ALL)
    def test_a_message_that_is_given_up_sends_nothing_but_its_letter(self, queues: Queues, delivery: Delivery) -> None:
        def bill_and_fail(record: Record, context: DeliveryContext) -> None:
            bill(record, context)
            if record.data == b"bad":
                raise ValueError("never")

        publish(queues, "1", "bad", "3")
        with queues.subscribe(
            "orders", bill_and_fail, group="g", delivery=delivery, processing=RETRY_ONCE
        ) as subscription:
            assert subscription.drain()
        assert (subscription.counts.handled, subscription.counts.dead_lettered) == (2, 1)
        assert invoices(queues) == ["invoice 1", "invoice 3"]
        [letter] = queues.dead_letters("orders")
        assert letter.message.data == b"bad"
        assert letter.story.attempts == (1 if delivery is Delivery.AT_MOST_ONCE else 2)
        assert committed(queues) == 3

    @pytest.mark.parametrize("delivery", ALL)
    def test_who_sends_what_cannot_be_stored_becomes_a_letter(
        self, open_embedded: OpenQueues, delivery: Delivery
    ) -> None:
        small = ProducerOptions(max_request_size=20_000, buffer_memory=40_000)
        queues = open_embedded(producing=small)

        def inflate(record: Record, context: DeliveryContext) -> None:
            bill(record, context)
            if record.data == b"2":
                context.send("invoices", None, bytes(30_000))

        publish(queues, "1", "2", "3")
        with queues.subscribe("orders", inflate, group="g", delivery=delivery) as subscription:
            assert subscription.drain()
        assert (subscription.counts.handled, subscription.counts.dead_lettered) == (2, 1)
        [letter] = queues.dead_letters("orders")
        assert (letter.message.data, letter.story.reason) == (b"2", "output_refused")
        assert letter.story.exception_class == "queuecore.errors.PayloadTooLarge"
        sent = invoices(queues)
        if delivery is Delivery.EXACTLY_ONCE:
            assert sent == ["invoice 1", "invoice 3"], "all that a message sends, or nothing"
        else:
            assert sent == ["invoice 1", "invoice 2", "invoice 3"]

    def test_an_unknown_queue_fails_the_attempt(self, queues: Queues) -> None:
        errors: list[str] = []

        def misspell(record: Record, context: DeliveryContext) -> None:
            try:
                context.send("invioces", None, b"x")
            except UnknownQueue as error:
                errors.append(str(error))
                raise

        publish(queues, "1")
        with queues.subscribe("orders", misspell, group="g", processing=NO_RETRY) as subscription:
            assert subscription.drain()
        assert errors == ["there is no queue 'invioces'; did you mean 'invoices'?"]
        assert subscription.counts.dead_lettered == 1

    def test_nothing_can_be_sent_once_the_handler_has_returned(self, queues: Queues) -> None:
        kept: list[DeliveryContext] = []
        publish(queues, "1")
        with queues.subscribe("orders", lambda record, context: kept.append(context), group="g") as subscription:
            assert subscription.drain()
        with pytest.raises(QueueError, match="handler has returned; send before it does, or use `publish`"):
            kept[0].send("invoices", None, b"late")


class TestAtMostOnce:
    def test_stopping_finishes_what_is_committed(self, queues: Queues) -> None:
        free, seen = threading.Event(), list[bytes]()

        def handle(record: Record, context: DeliveryContext) -> None:
            seen.append(record.data)
            assert free.wait(DEADLINE_S)

        publish(queues, "1", "2", "3")
        subscription = queues.subscribe("orders", handle, group="g", delivery="at_most_once")
        wait_until(lambda: seen)
        stopper = threading.Thread(target=subscription.stop)
        stopper.start()
        wait_until(lambda: subscription._consumption._stopping.is_set())
        free.set()
        stopper.join(DEADLINE_S)
        assert not subscription.is_running
        assert seen == [b"1", b"2", b"3"]

    def test_what_must_be_left_unhandled_is_counted_and_said(
        self, queues: Queues, caplog: pytest.LogCaptureFixture
    ) -> None:
        free, seen = threading.Event(), list[bytes]()

        def handle(record: Record, context: DeliveryContext) -> None:
            seen.append(record.data)
            free.wait(DEADLINE_S)

        publish(queues, "1", "2", "3")
        subscription = queues.subscribe("orders", handle, group="g", delivery="at_most_once")
        wait_until(lambda: seen)
        assert not subscription.stop(timeout_s=0.05)
        free.set()
        assert subscription.counts == SubscriptionCounts(dropped=3)
        assert "3 messages were committed, and are dropped unfinished" in caplog.text

    def test_what_cannot_be_committed_is_not_handled(self, queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
        """The partition went to another: nothing is handled here, and what is ours after that, once."""
        commit = AtMostOnce.begin
        refusals = iter([NotOwner("another has it")])

        def refuse_first(self: AtMostOnce, *arguments: object) -> None:
            for refusal in refusals:
                raise refusal
            commit(self, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(AtMostOnce, "begin", refuse_first)
        publish(queues, "1")
        with queues.subscribe("orders", bill, group="g", delivery="at_most_once") as subscription:
            assert subscription.drain()
        assert invoices(queues) == ["invoice 1"]


class TestExactlyOnce:
    def test_a_provider_must_have_transactions(self, queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
        plain = Capabilities(durable=True, transactions=False, compaction=True, group_strategies=True)
        monkeypatch.setattr(type(queues.provider), "capabilities", plain)
        with pytest.raises(NotSupported, match="use at_least_once with a handler that bears repetition"):
            queues.subscribe("orders", bill, group="g", delivery="exactly_once")

    def test_when_the_partition_is_anothers_what_was_sent_never_was(
        self, queues: Queues, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle = ExactlyOnce.settle
        attempts: list[int] = []

        def lose_the_partition(self: ExactlyOnce, consumer: object, *arguments: object) -> None:
            attempts.append(len(attempts))
            if len(attempts) == 1:
                consumer.unsubscribe()  # type: ignore[attr-defined]
            settle(self, consumer, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(ExactlyOnce, "settle", lose_the_partition)
        publish(queues, "1", "2")
        with queues.subscribe("orders", bill, group="g", delivery="exactly_once") as subscription:
            assert subscription.drain()
        assert len(attempts) >= 2
        assert invoices(queues) == ["invoice 1", "invoice 2"]

    def test_two_subscribers_share_a_queue_and_each_output_is_there_once(self, open_embedded: OpenQueues) -> None:
        queues = open_embedded(consuming=ConsumerOptions(max_poll_records=7))
        queues.create("many", 4)
        for number in range(200):
            queues.publish("many", str(number % 20), str(number).encode())
        queues.flush()
        with (
            queues.subscribe("many", bill, group="g", delivery="exactly_once") as first,
            open_embedded().subscribe("many", bill, group="g", delivery="exactly_once") as second,
        ):
            assert first.drain()
            assert second.drain()
        assert sorted(invoices(queues)) == sorted(f"invoice {number}" for number in range(200))
