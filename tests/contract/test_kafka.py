"""The Kafka provider keeps the contract, on a real broker; and what is Kafka's alone."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from queuecore.errors import ConfigurationError, PayloadTooLarge
from queuecore.messages import QueueMessage
from queuecore.providers.base import FOR_EVER, Provider, QueueConsumer, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.sending import send, send_and_wait
from queuecore.testing.contract import OpenProvider, ProviderContract, opened
from queuecore.testing.contract.kit import (
    POLL_MS,
    ContractKit,
    Heard,
    Subscribe,
    create_topic,
    hold,
    new_name,
    places,
    send_all,
    take,
)
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo


@contextmanager
def _polling(consumer: QueueConsumer) -> Iterator[None]:
    """A thread that polls meanwhile, as another process would."""
    enough = threading.Event()

    def poll() -> None:
        while not enough.is_set():
            consumer.poll(POLL_MS)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


class KafkaKit(ContractKit):
    # The library gives signs of life by itself; a member that only stops polling is out after minutes.
    short_session_ms = None
    knows_ends = False

    @pytest.fixture
    def open_provider(self, kafka_service: KafkaService) -> Iterator[OpenProvider]:
        servers = kafka_service.bootstrap_servers
        with opened(
            lambda producing, consuming: KafkaProvider(servers, producing=producing, consuming=consuming)
        ) as open_provider:
            yield open_provider


class TestKafka(KafkaKit, ProviderContract):
    pass


class TestOtherClients(KafkaKit):
    """What others write and read on the same cluster."""

    def test_a_tombstone_is_a_message_without_a_value(
        self, provider: Provider, info: TopicPartitionInfo, kafka_service: KafkaService
    ) -> None:
        send_and_wait(provider.producer(), info, QueueMessage.tombstone(uuid4()), DEADLINE_S)
        settings = {"bootstrap.servers": kafka_service.bootstrap_servers, "group.id": "other-client"}
        with closing(Consumer(settings)) as theirs:
            theirs.assign([TopicPartition(*info.place, 0)])
            [message] = theirs.consume(1, DEADLINE_S)
            assert (message.value(), message.headers()) == (None, None)
        producer = Producer(settings)
        producer.produce(info.full_topic_name, None, b"key", 0)
        producer.flush(DEADLINE_S)
        with closing(provider.reader()) as reader:
            [_, record] = reader.read(info.place, 0, 10)
        assert (record.key, record.data, record.is_tombstone) == (b"key", b"", True)

    def test_a_topic_of_theirs_is_read_with_its_settings(self, provider: Provider, kafka_service: KafkaService) -> None:
        name = new_name()
        client = AdminClient({"bootstrap.servers": kafka_service.bootstrap_servers})
        config = {"retention.ms": "-1", "cleanup.policy": "compact", "segment.bytes": str(1024**3)}
        for future in client.create_topics([NewTopic(name, 2, 1, config=config)]).values():
            future.result(DEADLINE_S)
        expected = TopicSpec(name, 2, FOR_EVER, FOR_EVER, 1024**3, "compact")
        wait_until(lambda: provider.admin().topics().get(name) == expected)


class TestSizes(KafkaKit):
    def test_a_message_may_be_as_large_as_the_options_say(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider(producing=ProducerOptions(max_request_size=3_000_000))
        [info] = create_topic(provider, TopicSpec(new_name()))
        send_all(provider, info, bytes(3_000_000))
        with pytest.raises(PayloadTooLarge, match="3000001 bytes"):
            send_all(provider, info, bytes(3_000_001))
        assert [record.size for record in take(consumers(provider, group, [info]), 1)] == [3_000_000]

    def test_the_brokers_may_take_less(self, open_provider: OpenProvider, info: TopicPartitionInfo) -> None:
        producer = open_provider(producing=ProducerOptions(max_request_size=3_000_000)).producer()
        assert type(send(producer, info, QueueMessage(None, bytes(2_000_000))).exception(DEADLINE_S)) is PayloadTooLarge

    @pytest.mark.parametrize("options", [ProducerOptions("1"), ProducerOptions("all", 0, compression="zstd")], ids=str)
    def test_whatever_the_options_the_order_stays(self, open_provider: OpenProvider, options: ProducerOptions) -> None:
        provider = open_provider(producing=options)
        [info] = create_topic(provider, TopicSpec(new_name()))
        stored = send_all(provider, info, *[b"x"] * 500)
        assert [one.offset for one in stored] == list(range(500))


class TestGroups(KafkaKit):
    """The default strategy is incremental: a rebalance touches only what moves."""

    def test_who_keeps_a_partition_does_not_notice_a_rebalance(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe
    ) -> None:
        provider, heard = open_provider(), Heard()
        infos = create_topic(provider, TopicSpec(new_name(), partitions=4))
        first = consumers(provider, group, infos, listener=heard)
        hold({first: lambda held: len(held) == 4})
        second = consumers(open_provider(), group, infos)
        with _polling(second):
            while len(second.partitions) < 2:
                first.poll(POLL_MS)
                first.commit(dict.fromkeys(first.partitions, 0))
        assert heard.given_up == second.partitions
        assert (heard.holds, heard.gone) == (first.partitions, set())

    def test_a_member_that_holds_nothing_leaves_at_once(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        options = ConsumerOptions(session_timeout_ms=60_000)
        provider = open_provider(consuming=options)
        both = [consumers(provider, group, [info]), consumers(open_provider(consuming=options), group, [info])]

        def one_holds_it() -> bool:
            for consumer in both:
                consumer.poll(POLL_MS)
            found = provider.admin().groups().get(group)
            held = sorted(map(len, found.members.values())) if found else []
            return held == [0, 1] and any(one.partitions for one in both)

        wait_until(one_holds_it)
        for consumer in both * 20:  # until the other one, too, has heard what it gets: nothing
            consumer.poll(POLL_MS)
        holder, idle = sorted(both, key=lambda one: len(one.partitions), reverse=True)
        idle.stop()
        wait_until(lambda: holder.poll(POLL_MS) or len(provider.admin().groups()[group].members) == 1, timeout=20)

    def test_a_member_with_another_strategy_or_an_impossible_session_is_refused(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        first = consumers(open_provider(), group, [info])
        hold({first: bool})
        for options in (ConsumerOptions(strategy="range"), ConsumerOptions(session_timeout_ms=1)):
            other = consumers(open_provider(consuming=options), group, [info])
            with pytest.raises(ConfigurationError):
                take(other, 1)

    def test_a_pause_outlasts_signs_of_life(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        consumer = consumers(provider, group, inner)
        hold({consumer: set(places(inner)).__eq__})
        consumer.pause([inner[0].place])
        consumer.keep_alive()
        send_all(provider, inner[0], b"later")
        send_all(provider, inner[1], b"now")
        assert [record.data for record in take(consumer, 1)] == [b"now"]
        assert consumer.poll(POLL_MS) == []
        consumer.resume([inner[0].place])
        assert [record.data for record in take(consumer, 1)] == [b"later"]

    def test_a_listener_may_choose_where_to_begin(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        class Chooser(Heard):
            consumer: QueueConsumer

            def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
                for place in partitions:
                    self.consumer.seek(place, 2)

        for info in inner:
            send_all(provider, info, b"0", b"1", b"2")
        chooser = Chooser()
        chooser.consumer = consumers(provider, group, inner, listener=chooser)
        assert {(one.partition, one.data) for one in take(chooser.consumer, 3)} == {(n, b"2") for n in range(3)}

    def test_a_listener_that_fails_ends_the_poll_alone(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        class Broken(Heard):
            def assigned(self, partitions: object) -> None:
                raise RuntimeError("a bug of the caller's")

        send_all(provider, info, b"0")
        consumer = consumers(provider, group, [info], listener=Broken())
        with pytest.raises(RuntimeError, match="a bug"):
            wait_until(lambda: consumer.poll(POLL_MS))
        assert [record.data for record in take(consumer, 1)] == [b"0"]
