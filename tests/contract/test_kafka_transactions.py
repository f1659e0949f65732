"""Transactions on Kafka, beyond the contract."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer

from queuecore import DeliveryContext, Record, SubscriptionCounts, open_queues
from queuecore.errors import ConfigurationError, NotOwner, PayloadTooLarge, QueueError, TransactionAborted
from queuecore.messages import QueueMessage
from queuecore.providers.base import Provider, TopicSpec, TransactionalProducer
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.transactional_client import TIMEOUT_MS, TransactionalClient, transactional_settings
from queuecore.providers.kafka.transactions import KafkaTransactionalProducer
from queuecore.providers.memory import MemoryProvider
from queuecore.providers.options import KafkaOptions, ProducerOptions
from queuecore.testing.contract import OpenProvider
from queuecore.testing.contract.kit import POLL_MS, Subscribe, create_topic, new_name, read_all, send_all, take
from queuecore.testing.contract.transactions import TransactionsContract
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.contract.kafka import KafkaKit

Infos = list[TopicPartitionInfo]


class TestTransactions(KafkaKit):
    @pytest.fixture
    def transactional(self, provider: Provider) -> Iterator[TransactionalProducer]:
        producer = provider.transactional_producer(new_name())
        yield producer
        producer.stop()

    def test_a_transactional_id_is_needed(self, provider: Provider) -> None:
        with pytest.raises(ConfigurationError, match="needs a transactional id"):
            provider.transactional_producer("")

    def test_what_the_brokers_refuse_undoes_the_transaction(
        self, open_provider: OpenProvider, info: TopicPartitionInfo
    ) -> None:
        provider = open_provider(producing=ProducerOptions(max_request_size=3_000_000))
        producer = provider.transactional_producer(new_name())
        transaction = producer.begin()
        transaction.send(info, QueueMessage(None, b"small"))
        transaction.send(info, QueueMessage(None, bytes(2_000_000)))
        with pytest.raises(PayloadTooLarge):
            transaction.commit()
        with producer.begin() as transaction:
            transaction.send(info, QueueMessage(None, b"next"))
        producer.stop()
        assert wait_until(lambda: read_all(provider, info.place)) == [b"next"]

    def test_a_subscription_whose_handler_sends_too_much_opens_few_clients(
        self, kafka_service: KafkaService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each that was refused something is replaced, which the brokers have to be asked for."""
        opened, open_client = list[object](), KafkaTransactionalProducer._open_client

        def note(producer: KafkaTransactionalProducer) -> TransactionalClient:
            opened.append(producer)
            return open_client(producer)

        def inflate(record: Record, context: DeliveryContext) -> None:
            context.send(queue, None, bytes(30_000))

        monkeypatch.setattr(KafkaTransactionalProducer, "_open_client", note)
        small, queue = ProducerOptions(max_request_size=20_000, linger_ms=5), new_name()
        with open_queues("kafka", servers=kafka_service.bootstrap_servers, producing=small) as queues:
            queues.create(queue)
            for _ in range(200):
                queues.publish(queue, None, b"x")
            assert queues.flush()
            with queues.subscribe(queue, inflate, group=new_name(), delivery="exactly_once") as subscription:
                assert subscription.drain()
                assert subscription.counts == SubscriptionCounts(dead_lettered=200)
        assert len(opened) < 50

    def test_a_topic_may_grow_while_a_producer_is_open(
        self, provider: Provider, transactional: TransactionalProducer
    ) -> None:
        name = new_name()
        [first] = create_topic(provider, TopicSpec(name))
        with transactional.begin() as transaction:
            transaction.send(first, QueueMessage(None, b"0"))
        provider.admin().alter_topics([TopicSpec(name, partitions=2)])
        second = TopicPartitionInfo(name, 1, use_internal_partition=True)
        with transactional.begin() as transaction:
            transaction.send(second, QueueMessage(None, b"1"))
        assert wait_until(lambda: read_all(provider, second.place)) == [b"1"]

    def test_offsets_of_another_providers_consumer_are_refused(self, transactional: TransactionalProducer) -> None:
        with closing(MemoryProvider()) as other, transactional.begin() as transaction:
            consumer = other.consumer("group")
            with pytest.raises(QueueError, match="another provider"):
                transaction.commit_offsets(consumer, {})

    def test_messages_do_not_take_effect_without_their_offsets(
        self,
        provider: Provider,
        transactional: TransactionalProducer,
        info: TopicPartitionInfo,
        inner: Infos,
        group: str,
        consumers: Subscribe,
    ) -> None:
        consumer = consumers(provider, group, inner)
        transaction = transactional.begin()
        transaction.send(info, QueueMessage(None, b"alone"))
        with pytest.raises(NotOwner):
            transaction.commit_offsets(consumer, {info.place: 1})
        with pytest.raises(NotOwner):
            transaction.commit()
        with transactional.begin() as transaction:
            transaction.send(info, QueueMessage(None, b"next"))
        assert wait_until(lambda: read_all(provider, info.place)) == [b"next"]


class TestBrokersProtocol(KafkaKit, TransactionsContract):
    """Groups that the brokers divide (KIP-848)."""

    group_protocol = "consumer"

    def test_a_member_commits_in_a_transaction_while_others_come_and_go(
        self,
        provider: Provider,
        transactional: TransactionalProducer,
        info: TopicPartitionInfo,
        inner: Infos,
        group: str,
        consumers: Subscribe,
    ) -> None:
        for source in inner:
            send_all(provider, source, b"0")
        consumer = consumers(provider, group, inner)
        take(consumer, 3)
        others = [consumers(provider, group, inner) for _ in range(2)]

        def committed() -> dict[ProviderPartition, int]:
            """What was, once the group has settled."""
            for one in (consumer, *others):
                one.poll(POLL_MS)
            kept = dict.fromkeys(consumer.partitions, 1)
            if len(kept) != 1:
                return {}
            try:
                with transactional.begin() as transaction:
                    transaction.send(info, QueueMessage(None, b"kept"))
                    transaction.commit_offsets(consumer, kept)
            except (TransactionAborted, NotOwner):
                return {}
            return kept

        kept = wait_until(committed)
        # The brokers show it soon after they have decided it.
        wait_until(lambda: provider.admin().committed_offsets({group: kept}) == {group: kept})
        wait_until(lambda: read_all(provider, info.place))
        assert read_all(provider, info.place) == [b"kept"]


@pytest.mark.parametrize(
    ("kafka", "timeout_ms"),
    [
        (KafkaOptions(), TIMEOUT_MS),
        (KafkaOptions(request_timeout_ms=100_000, delivery_timeout_ms=500_000), 100_000),
        (KafkaOptions(properties={"transaction.timeout.ms": "20000"}), 20_000),
        (KafkaOptions(producer_properties={"transaction.timeout.ms": "30000"}), 30_000),
    ],
    ids=str,
)
def test_the_library_takes_the_settings(kafka: KafkaOptions, timeout_ms: int) -> None:
    options = ProducerOptions(acks="1", retries=0)
    settings = transactional_settings("id", options, kafka)
    Connection("127.0.0.1:1", kafka).open(Producer, settings)
    assert settings["transaction.timeout.ms"] == timeout_ms
    assert (settings["acks"], settings["enable.idempotence"]) == ("all", True)
