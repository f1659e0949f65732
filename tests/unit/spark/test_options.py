"""How Spark's processes come by the provider's settings."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from queueapi.config import Config
from queuecore.config.provider_settings import KafkaSettings
from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import ConfigurationError
from workers.spark.options import settings_from, source_options


def on_kafka(tmp_path: Path) -> Config:
    kafka = KafkaSettings(
        bootstrap_servers="kafka:9093",
        ssl_enabled=True,
        sasl_mechanism="PLAIN",
        sasl_username="me",
        sasl_password="hidden",
        properties=(("ssl.keystore.password", "hidden"),),
    )
    return Config(data_dir=tmp_path, queue=QueueSettings(type="kafka", kafka=kafka))


def as_spark_gives_them(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in options.items()}


def test_what_is_secret_is_read_where_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installation = on_kafka(tmp_path)
    options = as_spark_gives_them(source_options(installation))
    assert "hidden" not in str(options)
    with pytest.raises(ConfigurationError, match=r"^SWITCHYARD_QUEUE_KAFKA_PROPERTIES, SWITCHYARD_QUEUE_KAFKA_SASL_PA"):
        settings_from(options)
    monkeypatch.setenv("SWITCHYARD_QUEUE_KAFKA_SASL_PASSWORD", "hidden")
    monkeypatch.setenv("SWITCHYARD_QUEUE_KAFKA_PROPERTIES", "ssl.keystore.password:hidden")
    assert settings_from(options).queue == installation.queue


def test_secrets_may_be_in_the_file_that_a_worker_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secrets.yaml"
    file.write_text("queue.kafka:\n  sasl.password: hidden\n  properties: {ssl.keystore.password: hidden}\n")
    monkeypatch.setenv("SWITCHYARD_CONFIG_FILE", str(file))
    installation = on_kafka(tmp_path)
    assert settings_from(as_spark_gives_them(source_options(installation))).queue == installation.queue


def test_a_worker_s_own_settings_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = source_options(Config(data_dir=tmp_path))
    monkeypatch.setenv("SWITCHYARD_QUEUE_TYPE", "kafka")
    assert settings_from(options) == Config(data_dir=tmp_path)


def test_options_hold_no_secrets(tmp_path: Path) -> None:
    options = source_options(Config(data_dir=tmp_path, secret_key="hidden", database_url="postgresql://u:hidden@h/n"))
    assert "hidden" not in str(options)
