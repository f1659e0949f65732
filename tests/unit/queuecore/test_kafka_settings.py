"""Our options in the library's words, all of which it must take."""

from typing import get_args

import pytest
from confluent_kafka import Consumer, Producer

from queuecore.errors import ConfigurationError
from queuecore.providers.base import FOR_EVER, MIN_SEGMENT_BYTES, Cleanup, TopicSpec
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.settings import consumer_settings, producer_settings
from queuecore.providers.kafka.topic_settings import from_settings, room_for, to_settings
from queuecore.providers.options import DEFAULT_KAFKA, Acks, Compression, ConsumerOptions, ProducerOptions, Strategy

CONNECTION = Connection("127.0.0.1:1")

PRODUCING = {
    "default": ProducerOptions(),
    "smallest": ProducerOptions("0", 0, 1, 0, 1, 1, 0),
    "largest": ProducerOptions("all", 10**6, 2**31 - 1, 60_000, 2**40, 10**9, 10**9),
    **{f"acks={acks}": ProducerOptions(acks=acks) for acks in get_args(Acks)},
    **{kind: ProducerOptions(compression=kind) for kind in get_args(Compression)},
}
CONSUMING = {
    "default": ConsumerOptions(),
    "smallest": ConsumerOptions(1, 1, "latest", 1),
    "largest": ConsumerOptions(10**6, 10**9, session_timeout_ms=3_600_000),
    "uncommitted": ConsumerOptions(isolation="read_uncommitted"),
    **{strategy: ConsumerOptions(strategy=strategy) for strategy in get_args(Strategy)},
}


@pytest.mark.parametrize("name", PRODUCING)
def test_the_library_takes_what_producers_may_be_told(name: str) -> None:
    CONNECTION.open(Producer, producer_settings(PRODUCING[name], DEFAULT_KAFKA))


@pytest.mark.parametrize("name", CONSUMING)
@pytest.mark.parametrize("grows", [True, False])
def test_the_library_takes_what_consumers_may_be_told(name: str, grows: bool) -> None:
    settings = consumer_settings(CONSUMING[name], DEFAULT_KAFKA, grows=grows) | {"group.id": "test"}
    CONNECTION.open(Consumer, settings).close()


def test_what_the_library_does_not_take_is_our_error() -> None:
    with pytest.raises(ConfigurationError, match=r"no\.such"):
        CONNECTION.open(Producer, {"no.such": 1})


@pytest.mark.parametrize(
    ("acks", "retries", "idempotent", "under_way"),
    [("all", 1, True, 5), ("all", 0, False, 5), ("1", 1, False, 1), ("1", 0, False, 5), ("0", 1, False, 1)],
)
def test_a_retry_never_changes_the_order(acks: Acks, retries: int, idempotent: bool, under_way: int) -> None:
    settings = producer_settings(ProducerOptions(acks=acks, retries=retries), DEFAULT_KAFKA)
    assert settings["enable.idempotence"] is idempotent
    assert settings["max.in.flight.requests.per.connection"] == under_way


def test_a_batch_of_several_is_no_larger_than_one_message_may_be() -> None:
    settings = producer_settings(ProducerOptions(batch_size=10_000_000, max_request_size=2_000_000), DEFAULT_KAFKA)
    assert settings["batch.size"] == 2_000_000


# --- topics


@pytest.mark.parametrize("cleanup", get_args(Cleanup))
def test_a_topics_settings_come_back(cleanup: Cleanup) -> None:
    spec = TopicSpec("topic", 3, 1_000, 2_000, 3 * 1024 * 1024, cleanup, replication_factor=3, min_insync_replicas=2)
    assert from_settings("topic", 3, 3, to_settings(spec)) == spec


def test_a_topic_somebody_else_made_is_read_as_well_as_can_be() -> None:
    settings = {
        "retention.ms": "-2",
        "retention.bytes": "-1",
        "segment.bytes": "100",
        "cleanup.policy": "delete,compact",
        "min.insync.replicas": "1",
    }
    copies = {"replication_factor": 1, "min_insync_replicas": 1}
    assert from_settings("topic", 1, 1, settings) == TopicSpec(
        "topic", 1, FOR_EVER, FOR_EVER, MIN_SEGMENT_BYTES, "compact,delete", **copies
    )
    never = settings | {"cleanup.policy": "", "retention.ms": "5"}
    assert from_settings("topic", 1, 1, never).retention_ms == FOR_EVER


def test_a_new_topic_has_room_for_what_may_be_sent() -> None:
    assert int(room_for(5_000_000)["max.message.bytes"]) > 5_000_000
    assert int(room_for(1)["max.message.bytes"]) >= 1_048_588
