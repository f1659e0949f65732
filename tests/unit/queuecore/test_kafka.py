"""What of the Kafka provider can be seen without a broker: keys, errors, and a broker that is not there."""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import UUID, uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException

from queuecore.errors import ConfigurationError, InvalidName, NotOwner, PayloadTooLarge, ProviderUnavailable, QueueError
from queuecore.messages import Key, QueueMessage
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.kafka.connection import Connection, Setting
from queuecore.providers.kafka.producer import KafkaProducer
from queuecore.providers.kafka.records import decode_key, encode_headers, encode_key
from queuecore.sending import send, send_and_wait
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("topic", 0)
PLACE = INFO.place
MESSAGE = QueueMessage(None, b"x")


# --- keys and headers


@pytest.mark.parametrize("key", [uuid4(), b"device-7", b"", b"784f394c", b"\xff" * 36, None], ids=repr)
def test_a_key_survives(key: Key) -> None:
    assert decode_key(encode_key(key)) == key


def test_a_uuid_key_is_written_as_text() -> None:
    text = b"784f394c-42b6-435a-983c-b7beff2784f9"
    assert encode_key(UUID(text.decode())) == text
    assert decode_key(text.upper()) == text.upper()
    assert decode_key(text.replace(b"-", b"")) == text.replace(b"-", b"")


@pytest.mark.parametrize("name", ["a\0b", "\udc80"], ids=repr)
def test_a_header_name_the_library_would_spoil_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"NUL|surrogates"):
        encode_headers({name: b""})


# --- errors


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.ILLEGAL_GENERATION, NotOwner),
        (KafkaError.UNKNOWN_MEMBER_ID, NotOwner),
        (KafkaError.REBALANCE_IN_PROGRESS, NotOwner),
        (KafkaError.MSG_SIZE_TOO_LARGE, PayloadTooLarge),
        (KafkaError.TOPIC_EXCEPTION, InvalidName),
        (KafkaError.INVALID_REPLICATION_FACTOR, ConfigurationError),
        (KafkaError._TRANSPORT, ProviderUnavailable),
        (KafkaError.NOT_ENOUGH_REPLICAS, ProviderUnavailable),
    ],
)
def test_what_a_broker_says_becomes_our_error(code: int, kind: type[QueueError]) -> None:
    connection = Connection("kafka.example:9092", "test", 1)
    for error in (KafkaError(code), KafkaException(KafkaError(code))):
        told = connection.explain(error, "do it")
        assert type(told) is kind
        assert str(told).startswith("cannot do it: ")
        assert "; " in str(told), "a message names the remedy"


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="bootstrap servers"):
        KafkaProvider(" ")
    with (
        closing(KafkaProvider("127.0.0.1:1", timeout_s=-1)) as provider,
        pytest.raises(ConfigurationError, match=r"socket\.timeout\.ms"),
    ):
        provider.admin()


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
    "topics": lambda provider: provider.admin().topics(),
    "end": lambda provider: provider.admin().end_offsets([PLACE]),
    "committed": lambda provider: provider.admin().committed_offsets({"group": [PLACE]}),
    "subscribe": lambda provider: provider.consumer("group").subscribe([INFO]),
    "read": read,
    "send": lambda provider: send_and_wait(provider.producer(), INFO, MESSAGE, DEADLINE_S),
}


@pytest.mark.parametrize("name", ASKING)
def test_no_broker_is_an_error_that_says_where_and_what_to_check(nobody: str, name: str) -> None:
    with (
        closing(KafkaProvider(nobody, timeout_s=0.5)) as provider,
        pytest.raises(ProviderUnavailable, match=rf"Kafka at {nobody}.*; check that the brokers run"),
    ):
        ASKING[name](provider)


class SmallBuffer(Connection):
    """Room for two messages, which wait long for their broker."""

    def settings(self) -> dict[str, Setting]:
        return {**Connection.settings(self), "queue.buffering.max.messages": 2, "delivery.timeout.ms": 60_000}


def test_a_full_buffer_refuses_and_stopping_answers_those_who_wait(nobody: str) -> None:
    producer = KafkaProducer(SmallBuffer(nobody, "test", 0.5))
    waiting = [send(producer, INFO, MESSAGE) for _ in range(2)]
    with pytest.raises(ProviderUnavailable, match=rf"3 messages wait for Kafka at {nobody} and there is no room"):
        send(producer, INFO, MESSAGE)
    assert not producer.flush(0)
    producer.stop()
    for future in waiting:
        assert isinstance(future.exception(0), ProviderUnavailable)
