"""What is wrong with Kafka's settings is said when the provider is opened, and by the name it was set under."""

import logging
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from queuecore.config.fields import leaves
from queuecore.config.provider_settings import KafkaSettings
from queuecore.errors import ConfigurationError
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.mapping import BY_PROPERTY, MAPPED, OWN
from queuecore.providers.kafka.settings import consumer_settings, producer_settings
from queuecore.providers.options import (
    DEFAULT_CONSUMING,
    DEFAULT_KAFKA,
    DEFAULT_PRODUCING,
    ConsumerOptions,
    KafkaOptions,
    KafkaSecurity,
    ProducerOptions,
)

PASSED_ON = {"properties", "producer_properties", "consumer_properties"}


def opened(**options: Any) -> None:
    KafkaProvider("127.0.0.1:1", kafka=KafkaOptions(**options)).close()


def problem(**options: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        opened(**options)
    return str(caught.value)


def refusal(name: str) -> str:
    """What the library itself says against a property with some value."""
    try:
        Producer({name: "1"})
    except KafkaException as error:
        return str(error)
    return ""


class TestPassingOn:
    @pytest.mark.parametrize(
        ("where", "name", "value"),
        [
            ("properties", "socket.keepalive.enable", "true"),
            ("properties", "ssl.cipher.suites", "HIGH"),
            ("producer_properties", "compression.level", "3"),
            ("consumer_properties", "fetch.min.bytes", "100"),
        ],
    )
    def test_what_is_not_ours_reaches_the_clients_it_is_for(self, where: str, name: str, value: str) -> None:
        options = KafkaOptions(**{where: {name: value}})  # type: ignore[arg-type]
        opened(**{where: {name: value}})
        got = {
            "properties": Connection("x:1", options).settings(),
            "producer_properties": producer_settings(DEFAULT_PRODUCING, options),
            "consumer_properties": consumer_settings(DEFAULT_CONSUMING, options, grows=True),
        }
        assert {one for one, settings in got.items() if settings.get(name) == value} == {where}

    @pytest.mark.parametrize("where", sorted(PASSED_ON))
    def test_what_the_library_does_not_know_is_refused_by_name(self, where: str) -> None:
        assert 'No such configuration property: "no.such"' in problem(**{where: {"no.such": "1"}})

    @pytest.mark.parametrize("value", ["", "many", "-7"])
    def test_a_wrong_value_is_refused_with_the_property(self, value: str) -> None:
        assert "statistics.interval.ms" in problem(properties={"statistics.interval.ms": value})

    @pytest.mark.parametrize(
        ("where", "name", "remedy"),
        [
            ("properties", "compression.level", "move it to producer_properties"),
            ("properties", "fetch.min.bytes", "move it to consumer_properties"),
            ("producer_properties", "fetch.min.bytes", "move it to consumer_properties"),
            ("consumer_properties", "compression.level", "move it to producer_properties"),
        ],
    )
    def test_what_would_have_no_effect_is_refused(self, where: str, name: str, remedy: str) -> None:
        assert problem(**{where: {name: "1"}}).endswith(remedy)

    @pytest.mark.parametrize(
        ("name", "setting"),
        [
            ("bootstrap.servers", "servers (queue.kafka.bootstrap.servers)"),
            ("metadata.broker.list", "servers (queue.kafka.bootstrap.servers)"),
            ("queue.buffering.max.kbytes", "ProducerOptions.buffer_memory (queue.kafka.buffer.memory)"),
            ("queue.buffering.max.ms", "ProducerOptions.linger_ms (queue.kafka.linger.ms)"),
            ("security.protocol", "KafkaSecurity.tls (queue.kafka.ssl.enabled)"),
            ("sasl.mechanisms", "KafkaSecurity.sasl_mechanism (queue.kafka.sasl.mechanism)"),
            ("isolation.level", "ConsumerOptions.isolation"),
        ],
    )
    def test_what_a_setting_of_ours_decides_is_refused_with_its_name(self, name: str, setting: str) -> None:
        assert problem(properties={name: "x"}) == f"properties has {name!r}, which {setting} decides; set that instead"

    @pytest.mark.parametrize("name", sorted(OWN))
    def test_what_the_provider_promises_is_not_for_others_to_change(self, name: str) -> None:
        assert problem(consumer_properties={name: "1"}).endswith("which the provider decides itself; leave it out")


class TestValues:
    def test_what_the_library_refuses_is_told_by_our_name(self) -> None:
        assert problem(request_timeout_ms=5).endswith(
            "change KafkaOptions.request_timeout_ms (queue.kafka.request.timeout.ms)"
        )

    @pytest.mark.parametrize("name", ["ca", "certificate", "key"])
    def test_a_file_that_is_not_there_is_named(self, name: str, tmp_path: Path) -> None:
        there = tmp_path / "there.pem"
        there.touch()
        files = {"ca": str(there), "certificate": str(there), "key": str(there)} | {name: str(tmp_path / "not.pem")}
        message = problem(security=KafkaSecurity(tls=True, **files))  # type: ignore[arg-type]
        assert message.startswith(f"KafkaSecurity.{name} (queue.kafka.ssl.{name}.location) is ")
        assert "not.pem', where there is no file" in message

    def test_a_file_that_is_no_certificate_is_refused_without_the_password(self, tmp_path: Path) -> None:
        wrong = tmp_path / "wrong.pem"
        wrong.write_text("no certificate")
        message = problem(
            security=KafkaSecurity(
                tls=True, certificate=str(wrong), key=str(wrong), key_password="hunter2", ca=str(wrong)
            )
        )
        assert "ssl." in message
        assert "KafkaSecurity." in message
        assert "hunter2" not in message

    @pytest.mark.parametrize(
        ("security", "protocol"),
        [
            (KafkaSecurity(), "plaintext"),
            (KafkaSecurity(tls=True), "ssl"),
            (KafkaSecurity(sasl_mechanism="PLAIN", username="me", password="x"), "sasl_plaintext"),
            (KafkaSecurity(tls=True, sasl_mechanism="SCRAM-SHA-512", username="me", password="x"), "sasl_ssl"),
        ],
    )
    def test_the_protocol_follows_from_what_is_set(self, security: KafkaSecurity, protocol: str) -> None:
        opened(security=security)
        settings = Connection("x:1", KafkaOptions(security=security)).settings()
        assert settings["security.protocol"] == protocol
        assert "ssl.ca.location" not in settings

    def test_hostnames_are_checked_unless_it_is_said_otherwise(self) -> None:
        checked, unchecked = (
            Connection("x:1", KafkaOptions(security=KafkaSecurity(tls=True, check_hostname=check))).settings()
            for check in (True, False)
        )
        name = "ssl.endpoint.identification.algorithm"
        assert (checked[name], unchecked[name]) == ("https", "none")


# In a process of its own: what other tests left behind ends when it likes.
COUNT_THREADS = """
from pathlib import Path
from queuecore.providers.kafka import KafkaProvider

threads = lambda: {entry.name for entry in Path("/proc/self/task").iterdir()}
before = threads()
KafkaProvider("127.0.0.1:1").close()
print(len(threads() - before))
"""


def test_checking_connects_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        opened()
    assert caplog.records == []


def test_checking_leaves_no_thread() -> None:
    """None of the library's own either."""
    done = subprocess.run([sys.executable, "-c", COUNT_THREADS], check=True, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


class TestTable:
    """`mapping` has every setting of ours, and every property that they decide."""

    def test_every_option_is_there_once(self) -> None:
        kinds = (ProducerOptions, ConsumerOptions, KafkaOptions, KafkaSecurity)
        options = {f"{kind.__name__}.{field.name}" for kind in kinds for field in fields(kind)}
        options -= {f"KafkaOptions.{name}" for name in PASSED_ON | {"security"}}
        assert sorted(one.option for one in MAPPED) == sorted(options | {"servers"})

    def test_every_key_of_the_tree_is_there_once(self) -> None:
        keys = {leaf.key for leaf in leaves(KafkaSettings)} - {name.replace("_", ".") for name in PASSED_ON}
        assert sorted(one.key for one in MAPPED if one.key) == sorted(keys)

    def test_every_property_we_set_is_ours(self) -> None:
        security = KafkaSecurity(
            tls=True,
            ca="x",
            certificate="x",
            key="x",
            key_password="x",
            sasl_mechanism="PLAIN",
            username="x",
            password="x",
        )
        settings = {
            *Connection("x:1", KafkaOptions(security=security)).settings(),
            *producer_settings(DEFAULT_PRODUCING, DEFAULT_KAFKA),
            *consumer_settings(DEFAULT_CONSUMING, DEFAULT_KAFKA, grows=True),
        }
        assert settings <= BY_PROPERTY.keys() | OWN

    def test_a_setting_without_a_twin_says_what_happens_instead(self) -> None:
        assert all(one.how for one in MAPPED if one.properties != (one.key,) and one.key)

    @pytest.mark.parametrize("name", sorted(BY_PROPERTY))
    def test_the_library_knows_every_property(self, name: str) -> None:
        assert 'No such configuration property: "no.such"' in refusal("no.such")
        assert "No such configuration property" not in refusal(name)
