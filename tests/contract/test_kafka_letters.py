"""Dead letters on Kafka that are too large for their topic."""

from confluent_kafka.admin import AdminClient, NewTopic

from queuecore.deadletter.writing import letter_target
from queuecore.messages import QueueMessage
from queuecore.providers.options import ProducerOptions
from queuecore.testing.contract import OpenProvider
from queuecore.testing.contract.kit import new_name
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.contract.kafka import KafkaKit
from tests.large_letters import KEY, LIMIT_BYTES, LargeLetters


class TestKafkaLetters(LargeLetters, KafkaKit):
    def test_a_topic_of_others_may_take_less_than_the_options_say(
        self, open_provider: OpenProvider, kafka_service: KafkaService
    ) -> None:
        info = TopicPartitionInfo(new_name(), 0)
        client = AdminClient({"bootstrap.servers": kafka_service.bootstrap_servers})
        config = {"max.message.bytes": str(LIMIT_BYTES)}
        topic = NewTopic(letter_target(info).full_topic_name, 1, 1, config=config)
        client.create_topics([topic])[topic.topic].result(DEADLINE_S)
        provider = open_provider(producing=ProducerOptions(max_request_size=1_000_000))
        message = QueueMessage(KEY, bytes(800_000), {"large": bytes(30_000)})
        assert self.loaded(provider, self.stored(provider, info, message)) == message
