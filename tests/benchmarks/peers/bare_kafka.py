"""Loops around confluent-kafka written for speed: as much as any program in Python gets out of it.

They do what ours have to do as well: the key is a UUID that becomes text, a sent message is called back for, and of a
received one everything is read.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from typing import Final
from uuid import UUID

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from queuecore.messages import QueueMessage
from queuecore.providers.kafka.settings import consumer_settings, producer_settings
from queuecore.providers.options import DEFAULT_CONSUMING, DEFAULT_KAFKA, ProducerOptions
from tests.benchmarks.workload import PACK, Tally, check_count, rate_behind_first

# How many are handed over between two looks for reports.
_POLL_EVERY: Final = 1_000
# How many are taken at once; of more than these, each takes longer.
_PIECE: Final = 512
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


class _KeyTexts(dict[int, bytes]):
    """Of the keys so far, by their number: writing a UUID takes nearly as long as sending it."""

    def __missing__(self, number: int) -> bytes:
        self[number] = text = str(UUID(int=number)).encode()
        return text


def send_all(
    servers: str, producing: ProducerOptions, topic: str, sent: Sequence[QueueMessage], delivered: ErrorOnly
) -> None:
    """From the first send to the last acknowledgement."""
    producer = Producer(producer_settings(producing, DEFAULT_KAFKA) | {"bootstrap.servers": servers})
    texts = _KeyTexts()
    produce, poll = producer.produce, producer.poll
    for start in range(0, len(sent), _POLL_EVERY):
        for key, data, headers in sent[start : start + _POLL_EVERY]:
            while True:
                try:
                    # By position: named arguments take longer. Every key of this workload is a UUID.
                    produce(topic, data, texts[key.int], 0, delivered, None, 0, headers)  # type: ignore[union-attr]
                    break
                except BufferError:
                    poll(_WAIT_S)
        poll(0)
    producer.flush()
    check_count("bare loop, acknowledgements", delivered.count, len(sent))


Read = Callable[[Sequence[Message]], list[bytes]]


def read_raw(messages: Sequence[Message]) -> list[bytes]:
    """Everything of each message, as the library gives it."""
    data = []
    for message in messages:
        _where = message.topic(), message.partition(), message.offset()
        _read = message.timestamp()[1], message.key(), message.headers()
        data.append(message.value())
    return data


def read_decoded(messages: Sequence[Message]) -> list[bytes]:
    """The same with the key as a UUID and the headers as a mapping, as ours gives them."""
    data = []
    for message in messages:
        _where = message.topic(), message.partition(), message.offset()
        _read = message.timestamp()[1], _key_of(message.key()), dict(message.headers() or ())
        data.append(message.value())
    return data


@cache
def _key_of(raw: bytes) -> UUID:
    """The keys of this workload come again and again."""
    return UUID(raw.decode())


def consume_rate(servers: str, topic: str, messages: int, read: Read) -> float:
    """Messages per second behind the first pack, which comes once the group is joined; with a commit for each pack."""
    tally = Tally("bare loop", messages)
    settings = consumer_settings(DEFAULT_CONSUMING, DEFAULT_KAFKA, grows=False)
    consumer = Consumer(settings | {"bootstrap.servers": servers, "group.id": f"bare-{topic}"})
    with closing(consumer):
        consumer.subscribe([topic])
        _take_pack(consumer, tally, messages, read)
        return rate_behind_first(tally, messages, lambda: _take_pack(consumer, tally, messages, read))


def _take_pack(consumer: Consumer, tally: Tally, messages: int, read: Read) -> None:
    """As many as ours takes at most, or all that are left, piece by piece."""
    end = min(tally.count + PACK, messages)
    while tally.count < end:
        piece = consumer.consume(min(_PIECE, end - tally.count), _WAIT_S)
        if any(map(Message.error, piece)):
            raise KafkaException(next(filter(None, map(Message.error, piece))))
        if piece:
            tally.take(read(piece))
            last = piece[-1]
    consumer.commit(offsets=[TopicPartition(last.topic(), last.partition(), last.offset() + 1)], asynchronous=False)
