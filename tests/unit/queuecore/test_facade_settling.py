"""What becomes of handled messages when the provider refuses, fails or takes a partition in the middle of it."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from typing import Any, ClassVar

import pytest

from queuecore import (
    ConsumerOptions,
    DeliveryContext,
    ProcessingStrategy,
    ProcessingStrategyType,
    ProviderUnavailable,
    Queues,
    Record,
    SubscriptionCounts,
    TransactionAborted,
    open_queues,
)
from queuecore.clock import SYSTEM_CLOCK
from queuecore.config.provider_settings import KafkaSettings
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.counting import Counter
from queuecore.consuming.desk import Desk, Finished
from queuecore.consuming.observing import Unobserved
from queuecore.consuming.partition import PartitionWork
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.settling import AtLeastOnce, ExactlyOnce
from queuecore.consuming.stay import Stay
from queuecore.consuming.work import Outcome, Work
from queuecore.messages import QueueMessage
from queuecore.providers.base import QueueConsumer, SendCallback
from queuecore.providers.log.consumer import LogConsumer
from queuecore.providers.log.provider import LogProvider
from queuecore.providers.log.transactions import LogTransactionalProducer
from queuecore.providers.memory.consumer import MemoryConsumer
from queuecore.providers.memory.provider import MemoryProvider
from queuecore.providers.memory.transactions import MemoryTransactionalProducer
from queuecore.providers.options import ProducerOptions
from queuecore.sending import Addressed
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

INFO = TopicPartitionInfo("orders", 0)
PLACE = INFO.place
PLAN = ConsumptionPlan("orders", "g", (INFO,), "handler", hand_over_s=1.0)
CONSUMERS = (LogConsumer, MemoryConsumer)
TRANSACTIONAL = (LogTransactionalProducer, MemoryTransactionalProducer)
OpenQueues = Callable[..., Queues]
LONG_PAUSE = ProcessingStrategy(ProcessingStrategyType.RETRY_FAILED, pause_ms=60_000, max_pause_ms=60_000)


@pytest.fixture(autouse=True)
def orders(queues: Queues) -> None:
    queues.create("orders")
    queues.create("invoices")


def publish(queues: Queues, *data: str) -> None:
    for stored in [queues.publish("orders", "one", one.encode()) for one in data]:
        stored.result(DEADLINE_S)


def invoices(queues: Queues) -> list[str]:
    with closing(queues.provider.reader()) as reader:
        return [record.data.decode() for record in reader.read(ProviderPartition("invoices.0", 0), 0, 1_000)]


def committed(queues: Queues) -> int:
    return queues.provider.admin().committed_offsets({"g": [PLACE]})["g"].get(PLACE, 0)


def bill(record: Record, context: DeliveryContext) -> None:
    context.send("invoices", record.key, b"invoice " + record.data)


def replace_in_all(
    monkeypatch: pytest.MonkeyPatch, kinds: Sequence[type], name: str, wrap: Callable[[Any], Any]
) -> None:
    for kind in kinds:
        monkeypatch.setattr(kind, name, wrap(getattr(kind, name)))


def unavailable(_: object) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise ProviderUnavailable("the disk is full")

    return fail


class Slow:
    """Waits with its first message until it is set free, and bills them all."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.free = threading.Event()

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        self.seen.append(record.data)
        assert self.free.wait(DEADLINE_S)
        bill(record, context)


class TestAtMostOnce:
    def test_where_there_is_no_room_to_send_the_others_are_stored_and_all_are_counted(
        self, queues: Queues, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        send = queues._producer.send

        def send_others(info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> None:
            if message.data == b"invoice 2":
                raise ProviderUnavailable("the buffer is full")
            send(info, message, callback)

        publish(queues, "1", "2", "3")
        monkeypatch.setattr(queues._producer, "send", send_others)
        with queues.subscribe("orders", bill, group="g", delivery="at_most_once") as subscription:
            assert subscription.drain(DEADLINE_S)
        assert subscription.counts == SubscriptionCounts(handled=2, dropped=1)
        assert invoices(queues) == ["invoice 1", "invoice 3"]
        assert "orders.0[0]@1 is dropped: what it sent was not stored: the buffer is full" in caplog.text

    @pytest.fixture
    def slow(self) -> Iterator[Slow]:
        slow = Slow()
        yield slow
        slow.free.set()

    def put_out(self, queues: Queues, monkeypatch: pytest.MonkeyPatch, slow: Slow) -> Any:
        """A subscription that has committed three messages, and cannot be in its group any longer."""
        publish(queues, "1", "2", "3")
        subscription = queues.subscribe("orders", slow, group="g", delivery="at_most_once")
        wait_until(lambda: slow.seen)
        replace_in_all(monkeypatch, (LogProvider, MemoryProvider), "consumer", unavailable)
        replace_in_all(monkeypatch, CONSUMERS, "poll", unavailable)
        wait_until(lambda: subscription._consumption.stay is None)
        return subscription

    def test_stopped_outside_its_group_it_finishes_what_is_committed(
        self, queues: Queues, monkeypatch: pytest.MonkeyPatch, slow: Slow
    ) -> None:
        subscription = self.put_out(queues, monkeypatch, slow)
        in_time: list[bool] = []
        stopper = threading.Thread(target=lambda: in_time.append(subscription.stop(DEADLINE_S)))
        stopper.start()
        wait_until(lambda: subscription._consumption._stopping.is_set())
        slow.free.set()
        stopper.join(DEADLINE_S)
        assert in_time == [True]
        assert subscription.counts == SubscriptionCounts(handled=3)
        assert invoices(queues) == ["invoice 1", "invoice 2", "invoice 3"]

    def test_what_it_cannot_finish_there_is_counted_and_said(
        self, queues: Queues, monkeypatch: pytest.MonkeyPatch, slow: Slow, caplog: pytest.LogCaptureFixture
    ) -> None:
        subscription = self.put_out(queues, monkeypatch, slow)
        assert not subscription.stop(timeout_s=0.05)
        assert subscription.counts == SubscriptionCounts(dropped=3)
        assert "3 messages were committed, and are dropped unfinished" in caplog.text


class TestStopping:
    def test_what_could_not_be_committed_at_the_end_is_said_and_comes_again(
        self, queues: Queues, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        slow, in_time = Slow(), list[bool]()
        publish(queues, "1")
        subscription = queues.subscribe("orders", slow, group="g")
        wait_until(lambda: slow.seen)
        stopper = threading.Thread(target=lambda: in_time.append(subscription.stop(DEADLINE_S)))
        stopper.start()
        wait_until(lambda: subscription._consumption._stopping.is_set())
        with monkeypatch.context() as outage:
            replace_in_all(outage, CONSUMERS, "commit", unavailable)
            slow.free.set()
            stopper.join(DEADLINE_S)
        assert in_time == [False]
        assert "the disk is full; it has ended, and what was handled since the last commit is delivered again" in (
            caplog.text
        )
        assert "joins its group again" not in caplog.text
        with queues.subscribe("orders", slow, group="g") as again:
            assert again.drain(DEADLINE_S)
        assert slow.seen == [b"1", b"1"]

    def test_nothing_is_given_to_the_handler_once_it_may_give_up_its_message(
        self, queues: Queues, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told_before: list[bool] = []
        take_no_more = Stay.take_no_more

        def observe(self: Stay) -> None:
            told_before.append(not subscription._consumption._stopping.is_set())
            take_no_more(self)

        monkeypatch.setattr(Stay, "take_no_more", observe)
        subscription = queues.subscribe("orders", bill, group="g")
        wait_until(lambda: subscription.partitions)
        assert subscription.stop(DEADLINE_S)
        assert told_before == [True]

    def test_what_follows_a_message_that_is_not_done_is_not_committed(self, queues: Queues) -> None:
        """Else the commit would cover it."""
        handled: list[bytes] = []

        def fail_first(record: Record, context: DeliveryContext) -> None:
            handled.append(record.data)
            if record.data == b"1":
                raise ValueError("not yet")

        publish(queues, "1", "2")
        subscription = queues.subscribe("orders", fail_first, group="g", submit="BURST", processing=LONG_PAUSE)
        wait_until(lambda: len(handled) == 2)
        assert subscription.stop(DEADLINE_S)
        assert committed(queues) == 0


@pytest.fixture
def records(queues: Queues) -> list[Record]:
    publish(queues, "1", "2")
    with closing(queues.provider.reader()) as reader:
        return reader.read(PLACE, 0, 2)


def desk_of(queues: Queues) -> Desk:
    return Desk(lambda: PLAN, queues.provider, queues.provider.producer(), Counter(), Unobserved())


class Joined:
    """Takes for its settling what the group gives."""

    def __init__(self, queues: Queues) -> None:
        self.settling = ExactlyOnce(desk_of(queues))
        self.consumer = queues.provider.consumer("g")
        self.consumer.subscribe([INFO], self)
        self.records: list[Record] = []
        wait_until(lambda: self.records.extend(self.consumer.poll(100)) or len(self.records) == 2)

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        self.settling.take(partitions)

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        self.settling.forget(partitions)

    lost = revoked

    def refusable(self) -> list[Finished]:
        """Each has sent something to a topic that is not there."""
        nowhere = Addressed(TopicPartitionInfo("nowhere", 0), QueueMessage(None, b"x"))
        part = PartitionWork(INFO, PLAN, SYSTEM_CLOCK, lambda: None)
        part.tracker.give([record.offset for record in self.records])
        works = [Work(record, None) for record in self.records]
        for work in works:
            work.outcome, work.outgoing = Outcome.SUCCEEDED, (nowhere,)
        return [(part, works)]


class TestExactlyOnce:
    def test_a_pack_that_sends_too_much_costs_few_transactions(
        self, open_embedded: OpenQueues, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun: list[object] = []

        def noting(begin: Any) -> Any:
            return lambda self: (begun.append(self), begin(self))[1]

        def inflate(record: Record, context: DeliveryContext) -> None:
            context.send("invoices", None, bytes(30_000))

        queues = open_embedded(producing=ProducerOptions(max_request_size=20_000, buffer_memory=40_000))
        publish(queues, *map(str, range(100)))
        replace_in_all(monkeypatch, TRANSACTIONAL, "begin", noting)
        settled: list[int] = []
        settle = ExactlyOnce.settle
        monkeypatch.setattr(
            ExactlyOnce, "settle", lambda self, *arguments: (settled.append(1), settle(self, *arguments))[1]
        )
        with queues.subscribe("orders", inflate, group="g", delivery="exactly_once") as subscription:
            assert subscription.drain(DEADLINE_S)
        assert subscription.counts == SubscriptionCounts(dead_lettered=100)
        assert len(begun) == 2 * len(settled)

    @pytest.fixture
    def joined(self, queues: Queues, records: list[Record]) -> Iterator[Joined]:
        joined = Joined(queues)
        yield joined
        joined.settling.forget()
        joined.consumer.stop()

    @pytest.fixture
    def blind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only a transaction shows what is refused."""
        replace_in_all(monkeypatch, TRANSACTIONAL, "check", lambda check: lambda *_: None)

    @pytest.mark.usefixtures("blind")
    def test_while_the_one_that_is_refused_is_looked_for_the_group_hears_of_us(
        self, queues: Queues, joined: Joined, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heard: list[object] = []
        replace_in_all(monkeypatch, CONSUMERS, "keep_alive", lambda keep: lambda self: (heard.append(1), keep(self))[1])
        joined.settling.settle(joined.consumer, joined.refusable())
        assert committed(queues) == 2
        assert len(list(queues.dead_letters("orders"))) == 2
        assert len(heard) == 3, "after the pack, and after each half"

    @pytest.mark.usefixtures("blind")
    def test_a_partition_that_goes_meanwhile_is_left_to_its_next_owner(
        self, queues: Queues, joined: Joined, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def take_and_give_back(_: object) -> Callable[..., None]:
            def keep_alive(_: object) -> None:
                joined.revoked(frozenset({PLACE}))
                joined.assigned(frozenset({PLACE}))

            return keep_alive

        replace_in_all(monkeypatch, CONSUMERS, "keep_alive", take_and_give_back)
        joined.settling.settle(joined.consumer, joined.refusable())
        assert committed(queues) == 0
        assert list(queues.dead_letters("orders")) == []

    @pytest.mark.usefixtures("blind")
    def test_a_partition_is_given_away_in_time_even_so(
        self, queues: Queues, joined: Joined, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In the midst of a poll there must be no other."""
        replace_in_all(monkeypatch, CONSUMERS, "keep_alive", lambda _: pytest.fail)
        with pytest.raises(TransactionAborted, match="no time left"):
            joined.settling.settle(joined.consumer, joined.refusable(), time.monotonic())
        assert committed(queues) == 0


class Interrupted(AtLeastOnce):
    """The group takes the partition in the midst of settling its first message."""

    commits_first: ClassVar[bool] = False
    interrupt: Callable[[], None]

    def __init__(self) -> None:
        self.settled: list[bytes] = []

    def settle(self, consumer: QueueConsumer, finished: Sequence[Finished], deadline: float | None = None) -> None:
        self.interrupt()
        self.settled += [work.record.data for _, works in finished for work in works]

    def forget(self, places: Collection[ProviderPartition] | None = None) -> None: ...


def test_what_was_handled_later_is_not_committed_in_the_midst_of_settling(
    queues: Queues, records: list[Record]
) -> None:
    settling, handled = Interrupted(), list[bytes]()
    consumption = Consumption(PLAN, queues.provider, lambda record, context: handled.append(record.data))
    consumption._around.settling = settling
    stay = Stay(queues.provider.consumer("g"), consumption._around, PLAN)
    stay.assigned(frozenset({PLACE}))
    [part] = stay._parts.values()

    def handle(record: Record) -> None:
        part.offer([record])
        stay._advance(time.monotonic())
        wait_until(lambda: record.data in handled)

    def take_the_partition() -> None:
        handle(records[1])
        stay.revoked(frozenset({PLACE}))

    settling.interrupt = take_the_partition
    handle(records[0])
    stay.finish(time.monotonic() + DEADLINE_S)
    assert (handled, settling.settled) == ([b"1", b"2"], [b"1"])
    assert stay.held == frozenset()
    consumption._pool.stop()


class TestOptions:
    @pytest.mark.parametrize(
        ("consuming", "most"),
        [
            (ConsumerOptions(), 1_000),
            (ConsumerOptions(session_timeout_ms=5_000), 1_000),
            (ConsumerOptions(max_poll_records=7), 7),
        ],
    )
    def test_a_subscription_reads_little_at_once_whatever_else_is_chosen(
        self, monkeypatch: pytest.MonkeyPatch, consuming: ConsumerOptions, most: int
    ) -> None:
        sizes: list[int] = []
        poll = MemoryConsumer.poll

        def measure(self: MemoryConsumer, duration_ms: int) -> list[Record]:
            records = poll(self, duration_ms)
            sizes.append(len(records))
            return records

        monkeypatch.setattr(MemoryConsumer, "poll", measure)
        with open_queues("in-memory", consuming=consuming) as queues:
            queues.create("orders")
            for _ in range(2_500):
                queues.publish("orders", None, b"x")
            assert queues.flush()
            with queues.subscribe("orders", lambda record, context: None, group="g") as subscription:
                assert subscription.drain(DEADLINE_S)
        assert (max(sizes), sum(sizes)) == (most, 2_500)

    def test_on_kafka_messages_wait_for_others_as_the_settings_have_it(self) -> None:
        chosen = ProducerOptions(linger_ms=7)
        for given, linger_ms in ({}, KafkaSettings().linger_ms), ({"producing": chosen}, 7):
            with closing(open_queues("kafka", servers="localhost:1", **given).provider) as provider:  # type: ignore[arg-type]
                assert provider._producing.linger_ms == linger_ms  # type: ignore[attr-defined]
