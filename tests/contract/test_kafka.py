"""The Kafka provider keeps the contract, on a real broker, in both layouts; and what it shares with other clients."""

from contextlib import closing
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from queuecore.errors import PayloadTooLarge
from queuecore.messages import QueueMessage
from queuecore.providers.base import FOR_EVER, Provider, TopicSpec
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send, send_and_wait
from queuecore.testing.contract import OpenProvider, ProviderContract
from queuecore.testing.contract.kit import Subscribe, create_topic, new_name, send_all, take
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.contract.kafka import KafkaKit


class TestKafka(KafkaKit, ProviderContract):
    pass


class TestKafkaInternalPartitions(TestKafka):
    use_internal_partition = True


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
        expected = TopicSpec(name, 2, FOR_EVER, FOR_EVER, 1024**3, "compact", 1, 1)
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
