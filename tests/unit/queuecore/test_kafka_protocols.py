"""What a member of a group tells the library, by the group's protocol."""

import pytest
from confluent_kafka import Consumer

from queuecore.errors import ConfigurationError
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.settings import consumer_settings
from queuecore.providers.options import DEFAULT_CONSUMING, DEFAULT_KAFKA, ConsumerOptions, KafkaOptions, Strategy

BROKERS_DIVIDE = KafkaOptions(group_protocol="consumer", max_poll_interval_ms=1_000)
CONNECTION = Connection("localhost:9092")


@pytest.mark.parametrize(("strategy", "assignor"), [("range", "range"), ("sticky", "uniform")])
def test_where_the_brokers_divide_sessions_are_theirs_to_set(strategy: Strategy, assignor: str) -> None:
    settings = consumer_settings(ConsumerOptions(strategy=strategy), BROKERS_DIVIDE, grows=True)
    assert (settings["group.protocol"], settings["group.remote.assignor"]) == ("consumer", assignor)
    assert settings["max.poll.interval.ms"] == 1_000
    assert settings.keys().isdisjoint(
        {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy", "group.instance.id"}
    )
    CONNECTION.open(Consumer, settings | {"group.id": "test"}).close()


def test_a_strategy_the_brokers_do_not_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="range, sticky"):
        consumer_settings(ConsumerOptions(strategy="round_robin"), BROKERS_DIVIDE, grows=False)


@pytest.mark.parametrize("kafka", [DEFAULT_KAFKA, BROKERS_DIVIDE], ids=["classic", "consumer"])
def test_a_member_with_an_id_keeps_to_the_classic_protocol(kafka: KafkaOptions) -> None:
    settings = consumer_settings(DEFAULT_CONSUMING, kafka, grows=False, member_id="one")
    assert (settings["group.protocol"], settings["group.instance.id"]) == ("classic", "one")
    assert "group.remote.assignor" not in settings
    CONNECTION.open(Consumer, settings | {"group.id": "test"}).close()
