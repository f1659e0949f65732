"""What of the Kafka provider can be seen without a broker: errors, and a broker that is not there."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from queuecore.errors import (
    ConfigurationError,
    GroupActive,
    InvalidMessage,
    InvalidName,
    NotOwner,
    OffsetOutOfRange,
    PayloadTooLarge,
    ProviderUnavailable,
    QueueError,
    UnknownTopic,
)
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.kafka.codes import MEANING
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.delivery import Delivery
from queuecore.providers.kafka.producer import KafkaProducer
from queuecore.providers.options import KafkaOptions, ProducerOptions
from queuecore.sending import send, send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("topic", 0)
PLACE = INFO.place
HASTY = KafkaOptions(request_timeout_ms=500, delivery_timeout_ms=500)
MESSAGE = QueueMessage(None, b"x")


# --- errors


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.ILLEGAL_GENERATION, NotOwner),
        (KafkaError.UNKNOWN_MEMBER_ID, NotOwner),
        (KafkaError.REBALANCE_IN_PROGRESS, NotOwner),
        (KafkaError.MSG_SIZE_TOO_LARGE, PayloadTooLarge),
        (KafkaError.TOPIC_EXCEPTION, InvalidName),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, UnknownTopic),
        (KafkaError.INVALID_RECORD, InvalidMessage),
        (KafkaError.OFFSET_OUT_OF_RANGE, OffsetOutOfRange),
        (KafkaError.GROUP_SUBSCRIBED_TO_TOPIC, GroupActive),
        (KafkaError.INCONSISTENT_GROUP_PROTOCOL, ConfigurationError),
        (KafkaError.INVALID_REPLICATION_FACTOR, ConfigurationError),
        (KafkaError._TRANSPORT, ProviderUnavailable),
        (KafkaError.NOT_ENOUGH_REPLICAS, ProviderUnavailable),
    ],
)
def test_what_a_broker_says_becomes_our_error(code: int, kind: type[QueueError]) -> None:
    connection = Connection("kafka.example:9092")
    for error in (KafkaError(code), KafkaException(KafkaError(code))):
        told = connection.explain(error, "do it")
        assert type(told) is kind
        assert str(told).startswith("cannot do it: ")
        assert "; " in str(told), "a message names the remedy"


@pytest.mark.parametrize("code", MEANING)
def test_every_error_has_a_remedy(code: int) -> None:
    told = Connection("kafka.example:9092").explain(KafkaError(code), "do it")
    assert isinstance(told, MEANING[code])
    assert "; " in str(told)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="bootstrap servers"):
        KafkaProvider(" ")
    with pytest.raises(ConfigurationError, match="request_timeout_ms"):
        KafkaOptions(request_timeout_ms=-1)


# --- no broker


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that refuses connections: held, so that nothing else can listen there."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def read(provider: Provider) -> None:
    with closing(provider.reader()) as reader:
        reader.read(PLACE, 0, 1)


ASKING: dict[str, Callable[[Provider], object]] = {
    "create": lambda provider: provider.admin().create_topics([TopicSpec("topic.0")]),
    "alter": lambda provider: provider.admin().alter_topics([TopicSpec("topic.0")]),
    "delete": lambda provider: provider.admin().delete_topics(["topic.0"]),
    "topics": lambda provider: provider.admin().topics(),
    "describe": lambda provider: provider.admin().describe_topics(["topic.0"]),
    "delete records": lambda provider: provider.admin().delete_records({PLACE: 1}),
    "beginning": lambda provider: provider.admin().beginning_offsets([PLACE]),
    "end": lambda provider: provider.admin().end_offsets([PLACE]),
    "times": lambda provider: provider.admin().offsets_for_times({PLACE: 1}),
    "committed": lambda provider: provider.admin().committed_offsets({"group": [PLACE]}),
    "alter offsets": lambda provider: provider.admin().alter_group_offsets("group", {PLACE: 1}),
    "delete offsets": lambda provider: provider.admin().delete_group_offsets("group", [PLACE]),
    "groups": lambda provider: provider.admin().groups(),
    "subscribe": lambda provider: provider.consumer("group").subscribe([INFO]),
    "subscribe to a topic": lambda provider: provider.consumer("group", "topic.0").subscribe(),
    "read": read,
    "send": lambda provider: send_and_wait(provider.producer(), INFO, MESSAGE, DEADLINE_S),
}


@pytest.mark.parametrize("name", ASKING)
def test_no_broker_is_an_error_that_says_where_and_what_to_check(nobody: str, name: str) -> None:
    with (
        closing(KafkaProvider(nobody, kafka=HASTY)) as provider,
        pytest.raises(ProviderUnavailable, match=rf"Kafka at {nobody}.*; check that the brokers run"),
    ):
        ASKING[name](provider)


# Room for a few messages, which wait long for their broker.
PATIENT = KafkaOptions(request_timeout_ms=500)
SMALL_BUFFER = ProducerOptions(buffer_memory=1_024, max_request_size=1_000, max_block_ms=10)


Deliver = Callable[[KafkaOptions, ProducerOptions], Delivery]


@pytest.fixture
def deliver(nobody: str) -> Iterator[Deliver]:
    """Opens deliveries to nobody, and stops them at the end."""
    with ExitStack() as stack:

        def open_delivery(kafka: KafkaOptions, options: ProducerOptions) -> Delivery:
            connection = Connection(nobody, kafka)
            stack.callback(connection.outage.close)
            delivery = Delivery(connection, options)
            stack.callback(delivery.stop)
            return delivery

        yield open_delivery


def test_a_full_buffer_refuses_and_stopping_answers_those_who_wait(nobody: str, deliver: Deliver) -> None:
    delivery = deliver(PATIENT, SMALL_BUFFER)
    producer, waiting = KafkaProducer(delivery, ""), list[Future[RecordMetadata]]()

    def fill_up() -> None:
        for _ in range(100):
            waiting.append(send(producer, INFO, QueueMessage(b"key", bytes(500))))

    with pytest.raises(ProviderUnavailable, match=rf"\d messages wait for Kafka at {nobody}, .*; check that"):
        fill_up()
    assert 1 < len(waiting) < 10
    assert not producer.flush(0)
    delivery.stop()
    for future in waiting:
        with pytest.raises(ProviderUnavailable, match=r"stopped before Kafka acknowledged .* may still be stored"):
            future.result(0)


def test_who_has_less_time_waits_no_longer_for_room(deliver: Deliver) -> None:
    producer = KafkaProducer(deliver(PATIENT, replace(SMALL_BUFFER, max_block_ms=60_000)), "")

    def fill_up() -> None:
        for _ in range(100):
            producer.send(INFO, QueueMessage(b"key", bytes(500)), lambda *_: None, 0.02)

    with pytest.raises(ProviderUnavailable, match="no room for more after 20 ms"):
        fill_up()


def test_a_callback_is_refused_rather_than_kept_waiting_for_itself(deliver: Deliver) -> None:
    """It runs on the thread that makes room and answers."""
    producer = KafkaProducer(deliver(HASTY, replace(SMALL_BUFFER, max_block_ms=60_000)), "")
    tried: list[object] = []

    def send_more(_metadata: RecordMetadata | None, _error: QueueError | None) -> None:
        tried.append(producer.flush(DEADLINE_S))
        try:
            for _ in range(100):
                producer.send(INFO, QueueMessage(b"key", bytes(500)), lambda _metadata, _error: None)
        except ProviderUnavailable as error:
            tried.append(error)

    producer.send(INFO, MESSAGE, send_more)
    wait_until(lambda: len(tried) == 2)
    assert tried[0] is False


def test_flush_waits_for_what_was_sent_before_it_alone(deliver: Deliver) -> None:
    """Whoever goes on sending keeps nobody else waiting."""
    producer, stop = KafkaProducer(deliver(HASTY, ProducerOptions()), ""), threading.Event()

    def go_on(_metadata: RecordMetadata | None, _error: QueueError | None) -> None:
        if not stop.is_set():
            producer.send(INFO, MESSAGE, go_on)

    producer.send(INFO, MESSAGE, go_on)
    for _ in range(3):
        first = send(producer, INFO, MESSAGE)
        assert producer.flush(DEADLINE_S)
        assert first.done()
    stop.set()


def test_a_message_of_the_wrong_types_fails_its_own_callback_only(nobody: str) -> None:
    with closing(KafkaProvider(nobody, kafka=HASTY)) as provider:
        producer = provider.producer()
        wrong: list[Any] = [QueueMessage(7, b""), QueueMessage(None, 7), QueueMessage(None, b"", {"a": None})]
        for message in [*wrong, QueueMessage(None, memoryview(b"data"))]:
            assert type(send(producer, INFO, message).exception(DEADLINE_S)) is InvalidMessage
        assert producer.flush(DEADLINE_S)


def test_stopping_a_producer_leaves_the_others_as_they_are(nobody: str) -> None:
    with closing(KafkaProvider(nobody, kafka=HASTY)) as provider:
        one, other = provider.producer("one"), provider.producer("other")
        one.stop()
        with pytest.raises(ProviderUnavailable, match="stopped"):
            send(one, INFO, MESSAGE)
        assert isinstance(send(other, INFO, MESSAGE).exception(DEADLINE_S), ProviderUnavailable)
        assert (one.default_topic, other.default_topic) == ("one", "other")


def test_a_producer_that_is_closed_answers_those_whose_callbacks_ask_for_more(nobody: str) -> None:
    provider, heard = KafkaProvider(nobody, kafka=HASTY), list[object]()

    def ask(_metadata: RecordMetadata | None, error: QueueError | None) -> None:
        heard.extend([error, provider.producer("another"), provider.admin()])

    provider.producer().send(INFO, QueueMessage(b"key", b"x"), ask)
    provider.close()
    assert isinstance(heard[0], ProviderUnavailable)
    assert len(heard) == 3


def test_who_is_interrupted_while_there_is_no_room_leaves_nothing_behind(deliver: Deliver) -> None:
    class Interrupted(BaseException):
        pass

    class Impatient(Delivery):
        def _patience_s(self, at_most_s: float | None) -> float:
            raise Interrupted

    delivery = deliver(PATIENT, SMALL_BUFFER)
    delivery.__class__ = Impatient

    def fill_up() -> None:
        for _ in range(100):
            delivery.send(INFO, QueueMessage(b"key", bytes(500)), lambda _metadata, _error: None)

    with pytest.raises(Interrupted):
        fill_up()
    delivery.stop()
    assert delivery.flush(0)
