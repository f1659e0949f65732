"""Loops around confluent-kafka written for speed: as much as any program in Python gets out of it.

They do what ours have to do as well: the key is a UUID that becomes text, a sent message is called back for, and of a
received one everything is read.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from queuecore.messages import QueueMessage
from queuecore.providers.kafka.settings import consumer_settings, producer_settings
from queuecore.providers.options import DEFAULT_CONSUMING, DEFAULT_KAFKA
from tests.benchmarks.kafka_broker import PRODUCING
from tests.benchmarks.workload import PACK, Tally, check_count, rate_behind_first

# How many are handed over between two looks for reports.
_POLL_EVERY: Final = 1_000
_WAIT_S: Final = 10.0


class ErrorOnly:
    """Counts what was stored."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        self.count += 1


class Metadata(ErrorOnly):
    """Reads where it was stored, too, as a caller of ours is told."""

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        self.last = (message.topic(), message.partition(), message.offset(), message.timestamp()[1])
        self.count += 1


def send_all(servers: str, topic: str, sent: Sequence[QueueMessage], delivered: ErrorOnly) -> None:
    """From the first send to the last acknowledgement."""
    settings = producer_settings(PRODUCING, DEFAULT_KAFKA) | {"bootstrap.servers": servers}
    producer = Producer(settings)
    produce, poll = producer.produce, producer.poll
    for start in range(0, len(sent), _POLL_EVERY):
        for key, data, headers in sent[start : start + _POLL_EVERY]:
            while True:
                try:
                    produce(topic, data, str(key), 0, on_delivery=delivered, headers=headers)
                    break
                except BufferError:
                    poll(_WAIT_S)
        poll(0)
    producer.flush()
    check_count("bare loop, acknowledgements", delivered.count, len(sent))


def consume_rate(servers: str, topic: str, messages: int) -> float:
    """Messages per second behind the first pack, which comes once the group is joined; with a commit for each pack."""
    tally = Tally("bare loop", messages)
    settings = consumer_settings(DEFAULT_CONSUMING, DEFAULT_KAFKA, grows=False)
    consumer = Consumer(settings | {"bootstrap.servers": servers, "group.id": f"bare-{topic}"})
    with closing(consumer):
        consumer.subscribe([topic])
        while not tally.count:
            _take_pack(consumer, tally, messages)
        return rate_behind_first(tally, messages, lambda: _take_pack(consumer, tally, messages - tally.count))


def _take_pack(consumer: Consumer, tally: Tally, at_most: int) -> None:
    pack = consumer.consume(min(PACK, at_most), _WAIT_S)
    data = []
    for message in pack:
        if message.error() is not None:
            raise KafkaException(message.error())
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        _read = message.timestamp()[1], message.key(), message.headers()
        data.append(message.value())
    if pack:
        tally.take(data)
        consumer.commit(offsets=[TopicPartition(topic, partition, offset + 1)], asynchronous=False)
