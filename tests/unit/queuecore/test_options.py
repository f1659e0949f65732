"""A word that means nothing is refused where it is written, with those that mean something."""

from pathlib import Path
from typing import Any

import pytest

from queuecore.errors import ConfigurationError
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryStorage
from queuecore.providers.options import ConsumerOptions, KafkaOptions, KafkaSecurity, ProducerOptions
from queuecore.routing import RoutedQueue
from queuecore.topics import MAX_PARTITIONS


@pytest.mark.parametrize(
    ("kind", "wrong", "choices"),
    [
        (ProducerOptions, {"acks": "2"}, "0, 1, all"),
        (ProducerOptions, {"compression": "brotli"}, "none, lz4, zstd, gzip, snappy"),
        (KafkaOptions, {"group_protocol": "new"}, "classic, consumer"),
        (KafkaSecurity, {"sasl_mechanism": "GSSAPI"}, "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        (ConsumerOptions, {"strategy": "roundrobin"}, "range, round_robin, sticky"),
        (ConsumerOptions, {"auto_offset_reset": "x"}, "earliest, latest"),
        (ConsumerOptions, {"isolation": "none"}, "read_committed, read_uncommitted"),
        (TopicSpec, {"name": "t", "cleanup": "compakt"}, "delete, compact, compact,delete"),
        (MemoryStorage, {"when_full": "rejct"}, "block, reject"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(kind: Any, wrong: dict[str, str], choices: str) -> None:
    [name, value] = list(wrong.items())[-1]
    with pytest.raises(ConfigurationError, match=f"{name} is {value!r}; choose one of {choices}"):
        kind(**wrong)


def test_the_log_has_not_every_compression_that_kafka_has(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"compression is 'gzip'; choose one of none, lz4, zstd$"):
        LogProvider(tmp_path, ProducerOptions(compression="gzip"))


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"sasl_mechanism": "PLAIN"}, "username"),
        ({"sasl_mechanism": "PLAIN", "username": "me"}, "password"),
        ({"username": "me"}, "sasl_mechanism"),
        ({"password": "hunter2"}, "sasl_mechanism"),
        ({"ca": "ca.pem"}, "tls"),
        ({"tls": True, "certificate": "me.pem"}, "key"),
        ({"tls": True, "key": "me.key"}, "certificate"),
        ({"tls": True, "key_password": "hunter2"}, "key"),
    ],
)
def test_security_is_whole_or_refused(given: dict[str, Any], missing: str) -> None:
    last = list(given)[-1] if missing != "password" else "sasl_mechanism"
    with pytest.raises(ConfigurationError, match=f"^{last} is set, which needs {missing}; ") as caught:
        KafkaSecurity(**given)
    assert "hunter2" not in str(caught.value)


def test_passwords_are_not_shown() -> None:
    security = KafkaSecurity(
        tls=True,
        certificate="me.pem",
        key="me.key",
        key_password="hunter2",
        sasl_mechanism="PLAIN",
        username="me",
        password="hunter3",
    )
    options = KafkaOptions(security=security, properties={"ssl.keystore.password": "hunter4"})
    assert "hunter" not in repr(options)


@pytest.mark.parametrize("kind", [TopicSpec, RoutedQueue])
@pytest.mark.parametrize("partitions", [-1, 0, MAX_PARTITIONS + 1])
def test_a_topic_has_no_more_partitions_than_there_may_be(kind: Any, partitions: int) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot have {partitions} partitions"):
        kind("t", partitions)
    assert kind("t", MAX_PARTITIONS).partitions == MAX_PARTITIONS
