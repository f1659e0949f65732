"""Sending on a real broker: what it refuses fails alone, whatever else happens to the batch or to the client."""

import ctypes
import importlib.metadata
import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import get_args

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from queuecore.errors import InvalidMessage, PayloadTooLarge, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, Record, RecordMetadata
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.delivery import Delivery
from queuecore.providers.kafka.producer import KafkaProducer
from queuecore.providers.options import Acks, Compression, ProducerOptions
from queuecore.sending import send
from queuecore.testing.contract import OpenProvider
from queuecore.testing.contract.kit import create_topic, new_name, read_all, send_all, settle
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.contract.kafka import KafkaKit

COUNT = 1_000
BAD = range(50, COUNT, 100)
HEADERS = {"ts": b"12345678"}


@dataclass(frozen=True)
class Refusal:
    """A topic, and the message among a thousand that it does not take."""

    topic: dict[str, str]
    bad: QueueMessage
    error: type[QueueError]


REFUSALS = {
    "without a key, the topic compacted": Refusal(
        {"cleanup.policy": "compact"}, QueueMessage(None, b"x" * 100, HEADERS), InvalidMessage
    ),
    "larger than the topic takes": Refusal(
        {"max.message.bytes": "20000"}, QueueMessage(b"key", bytes(30_000), HEADERS), PayloadTooLarge
    ),
}


def make_topic(kafka_service: KafkaService, settings: dict[str, str]) -> TopicPartitionInfo:
    """With settings that our own admin does not give."""
    name = new_name()
    client = AdminClient({"bootstrap.servers": kafka_service.bootstrap_servers})
    for future in client.create_topics([NewTopic(name, 1, 1, config=settings)]).values():
        future.result(DEADLINE_S)
    return TopicPartitionInfo(name)


def send_mixed(provider: Provider, info: TopicPartitionInfo, refusal: Refusal) -> list[QueueMessage]:
    """A thousand messages with the bad one among them every now and then; those that are stored."""
    producer = provider.producer()
    good = [QueueMessage(b"%d" % number, b"x" * 100, HEADERS) for number in range(COUNT)]
    messages = [refusal.bad if number in BAD else message for number, message in enumerate(good)]
    errors = settle([send(producer, info, message) for message in messages])
    assert {number: type(error) for number, error in enumerate(errors) if error} == dict.fromkeys(BAD, refusal.error)
    return [message for message in messages if message is not refusal.bad]


def read_messages(provider: Provider, info: TopicPartitionInfo) -> list[QueueMessage]:
    with closing(provider.reader()) as reader:
        found: list[Record] = []
        while records := reader.read(info.place, found[-1].offset + 1 if found else 0, COUNT):
            found += records
        return [QueueMessage(record.key, record.data, dict(record.headers)) for record in found]


def by_key(message: QueueMessage) -> bytes:
    return message.key if isinstance(message.key, bytes) else b""


class TestRefused(KafkaKit):
    @pytest.mark.parametrize(
        "options", [ProducerOptions(), ProducerOptions("1"), ProducerOptions(linger_ms=20)], ids=str
    )
    @pytest.mark.parametrize("name", REFUSALS)
    def test_what_is_refused_fails_alone_and_the_others_keep_their_order(
        self, open_provider: OpenProvider, kafka_service: KafkaService, name: str, options: ProducerOptions
    ) -> None:
        refusal, provider = REFUSALS[name], open_provider(producing=options)
        info = make_topic(kafka_service, refusal.topic)
        stored = send_mixed(provider, info, refusal)
        assert read_messages(provider, info) == stored

    def test_a_topic_that_takes_less_than_a_batch_takes_what_it_can(
        self, provider: Provider, kafka_service: KafkaService
    ) -> None:
        """What the brokers refuse in company is sent again alone, and what came later may be stored before."""
        info = make_topic(kafka_service, {"max.message.bytes": "2000"})
        stored = send_mixed(provider, info, Refusal({}, QueueMessage(b"", bytes(3_000), HEADERS), PayloadTooLarge))
        assert sorted(read_messages(provider, info), key=by_key) == sorted(stored, key=by_key)

    def test_a_topic_that_is_compacted_only_now_takes_the_others_all_the_same(
        self, open_provider: OpenProvider
    ) -> None:
        provider = open_provider(producing=ProducerOptions(linger_ms=50))
        spec = TopicSpec(new_name())
        [info] = create_topic(provider, spec)
        send_all(provider, info, b"without a key")
        provider.admin().alter_topics([TopicSpec(spec.name, cleanup="compact")])
        producer, keys = provider.producer(), [b"a", None, b"b"]

        def refused() -> list[bool]:
            return [
                error is not None for error in settle([send(producer, info, QueueMessage(key, b"x")) for key in keys])
            ]

        wait_until(lambda: any(refused()))
        assert refused() == [False, True, False]
        provider.admin().alter_topics([spec])
        wait_until(lambda: not any(refused()))


class TestOptions(KafkaKit):
    @pytest.mark.parametrize("compression", get_args(Compression))
    @pytest.mark.parametrize("acks", get_args(Acks))
    def test_whatever_the_options_all_is_stored_in_order(
        self, open_provider: OpenProvider, acks: Acks, compression: Compression
    ) -> None:
        provider = open_provider(producing=ProducerOptions(acks, compression=compression))
        [info] = create_topic(provider, TopicSpec(new_name()))
        data = [b"%d" % number * 50 for number in range(500)]
        send_all(provider, info, *data)
        assert wait_until(lambda: len(found := read_all(provider, info.place)) == len(data) and found) == data


class TestManySenders(KafkaKit):
    def test_each_sends_in_order_and_flush_means_its_own(self, provider: Provider, info: TopicPartitionInfo) -> None:
        producer, answers = provider.producer(), [list[int]() for _ in range(4)]

        def send_many(sender: int) -> None:
            for number in range(COUNT):
                producer.send(info, QueueMessage(b"%d" % sender, b"%d" % number), keep_offset(answers[sender]))
                if number % 100 == 99:
                    assert producer.flush(DEADLINE_S)
                    assert len(answers[sender]) == number + 1

        in_threads([partial(send_many, sender) for sender in range(4)])
        assert [offsets == sorted(offsets) for offsets in answers] == [True] * 4
        assert sorted(chain.from_iterable(answers)) == list(range(4 * COUNT))
        for sender in range(4):
            mine = [int(message.data) for message in read_messages(provider, info) if message.key == b"%d" % sender]
            assert mine == list(range(COUNT))


def keep_offset(offsets: list[int]) -> Callable[[RecordMetadata | None, QueueError | None], None]:
    return lambda metadata, _error: None if metadata is None else offsets.append(metadata.offset)


def in_threads(works: list[Callable[[], None]]) -> None:
    """Run all at once; the first error there was."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


class TestFatalErrors(KafkaKit):
    """The library ends a producer whose numbering no longer fits the brokers'. It has a function to provoke that."""

    def test_a_new_producer_takes_over(
        self, kafka_service: KafkaService, info: TopicPartitionInfo, caplog: pytest.LogCaptureFixture
    ) -> None:
        options = ProducerOptions(linger_ms=200)
        connection = Connection(kafka_service.bootstrap_servers)
        delivery = Delivery(connection, options)
        producer = KafkaProducer(delivery, "")
        waiting = send(producer, info, QueueMessage(b"key", b"waits for company"))
        with caplog.at_level(logging.INFO, "queuecore"):
            end_for_good(delivery._library._client)
            after = [send(producer, info, QueueMessage(b"key", b"after")) for _ in range(100)]
            with pytest.raises(ProviderUnavailable, match=r"failed for good, .* a test; send it again"):
                waiting.result(DEADLINE_S)
            assert settle(after) == [None] * 100
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert "a new one takes over" in caplog.text
        delivery.stop()
        connection.outage.close()


def end_for_good(client: Producer) -> None:
    """As the library does itself when the brokers say OUT_OF_ORDER_SEQUENCE_NUMBER."""
    files = importlib.metadata.files("confluent-kafka") or []
    path = next(file for file in files if file.match("confluent_kafka.libs/librdkafka*"))
    library = ctypes.CDLL(str(path.locate()))
    # A client is a Python object that begins with the library's handle.
    handle = ctypes.c_void_p.from_address(id(client) + object.__basicsize__)
    library.rd_kafka_test_fatal_error(handle, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, b"a test")
