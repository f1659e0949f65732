"""The client that administers Kafka, as far as it can be seen without a broker."""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import KafkaError
from kafka import errors
from kafka.net.compat import KafkaNetClient

from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.python_client import Clients, _settings, parse_refusal, seeking_controller, told
from queuecore.providers.options import KafkaOptions, KafkaSecurity


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.CoordinatorNotAvailableError("noise"), KafkaError.COORDINATOR_NOT_AVAILABLE),
        (errors.GroupAuthorizationFailedError(), KafkaError.GROUP_AUTHORIZATION_FAILED),
        (errors.UnknownBrokerIdError(7), KafkaError.LEADER_NOT_AVAILABLE),
        (errors.KafkaTimeoutError("too late"), KafkaError._TIMED_OUT),
        (errors.KafkaConnectionError("gone"), KafkaError._TRANSPORT),
    ],
)
def test_errors_are_told_in_the_other_librarys_words(error: errors.KafkaError, code: int) -> None:
    assert told(error).code() == code
    assert "noise" not in told(error).str()


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("[Error 40] InvalidConfigurationError: segment.bytes: too\nlarge", (40, "segment.bytes: too\nlarge")),
        ("[Error 69] GroupIdNotFoundError", (69, "")),
        ("something else", (-1, "something else")),
    ],
)
def test_a_refusal_that_is_text_has_a_code_and_a_reason(text: str, parsed: tuple[int, str]) -> None:
    assert parse_refusal(text) == parsed


def test_the_cluster_is_reached_as_the_options_say() -> None:
    security = KafkaSecurity(tls=True, ca="ca.pem", sasl_mechanism="SCRAM-SHA-512", username="user", password="word")
    settings = _settings(Connection("a:1,b:2", KafkaOptions(request_timeout_ms=5, security=security)))
    assert {name: value for name, value in settings.items() if value is not None} == {
        "bootstrap_servers": "a:1,b:2",
        "client_id": "switchyard",
        "request_timeout_ms": 5,
        "proxy_url": "direct://",
        "security_protocol": "SASL_SSL",
        "ssl_check_hostname": True,
        "ssl_cafile": "ca.pem",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "user",
        "sasl_plain_password": "word",
    }


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_client_that_gets_no_answer_leaves_nothing_behind(silent: str) -> None:
    before = set(threading.enumerate())
    clients = Clients(Connection(silent, KafkaOptions(request_timeout_ms=200)))
    with pytest.raises(errors.KafkaTimeoutError), clients.borrowed(0.2):
        pass
    assert set(threading.enumerate()) <= before
    clients.close()


def test_no_controller_is_told_as_such() -> None:
    with pytest.raises(errors.NotControllerError), seeking_controller():
        raise RuntimeError("Failed to find active controller id!")


def test_our_own_clients_log_nothing_and_those_of_others_all_they_have(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gone = f"127.0.0.1:{server.getsockname()[1]}"
    clients = Clients(Connection(gone, KafkaOptions(request_timeout_ms=200)))
    with caplog.at_level(logging.DEBUG, "kafka"):
        with pytest.raises(errors.KafkaTimeoutError), clients.borrowed(0.2):
            pass
        clients.close()
        assert caplog.records == []
        theirs = KafkaNetClient(bootstrap_servers=gone, proxy_url="direct://")
        with closing(theirs), pytest.raises(errors.KafkaTimeoutError):
            theirs.check_version(timeout_ms=200)
    assert {"kafka.net.connection", "kafka.net.manager"} <= {record.name for record in caplog.records}
    assert logging.getLogger("kafka").level == logging.NOTSET
