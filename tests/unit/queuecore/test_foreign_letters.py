"""Letters that others wrote, read as stories of ours. The names and forms are theirs."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.deadletter.envelope import FailureStory, original_headers, read_story, to_letter
from queuecore.deadletter.fingerprint import fingerprint
from queuecore.deadletter.foreign import Origin
from queuecore.messages import Headers, Record

SPRING = {
    "kafka_dlt-original-topic": b"orders",
    "kafka_dlt-original-partition": struct.pack(">i", 3),
    "kafka_dlt-original-offset": struct.pack(">q", 42),
    "kafka_dlt-original-timestamp": struct.pack(">q", 1_700_000_000_000),
    "kafka_dlt-original-timestamp-type": b"CreateTime",
    "kafka_dlt-original-consumer-group": b"billing",
    "kafka_dlt-exception-fqcn": b"org.springframework.kafka.listener.ListenerExecutionFailedException",
    "kafka_dlt-exception-cause-fqcn": b"java.lang.IllegalStateException",
    "kafka_dlt-exception-message": b"Listener failed; no device 17",
    "kafka_dlt-exception-stacktrace": b"java.lang.IllegalStateException: no device 17\n\tat com.acme.Billing.charge",
}
SPRING_RETRY = {
    "kafka_original-topic": b"orders",
    "kafka_original-partition": struct.pack(">i", 3),
    "kafka_original-offset": struct.pack(">q", 42),
    "kafka_exception-fqcn": b"java.lang.IllegalStateException",
    "kafka_exception-message": b"no device 17",
    "kafka_exception-stacktrace": b"java.lang.IllegalStateException: no device 17",
    "retry_topic-attempts": b"\x04",
    "retry_topic-original-timestamp": (1_700_000_000_000).to_bytes(6),
}
SPRING_KEY = {
    "kafka_dlt-original-topic": b"orders",
    "kafka_dlt-key-exception-fqcn": b"DeserializationException",
    "kafka_dlt-key-exception-message": b"no UUID",
    "kafka_dlt-key-exception-stacktrace": b"DeserializationException: no UUID",
}
CONNECT = {
    "__connect.errors.topic": b"orders",
    "__connect.errors.partition": b"3",
    "__connect.errors.offset": b"42",
    "__connect.errors.connector.name": b"to-s3",
    "__connect.errors.task.id": b"1",
    "__connect.errors.stage": b"VALUE_CONVERTER",
    "__connect.errors.class.name": b"org.apache.kafka.connect.json.JsonConverter",
    "__connect.errors.exception.class.name": b"org.apache.kafka.connect.errors.DataException",
    "__connect.errors.exception.message": b"no device 17",
    "__connect.errors.exception.stacktrace": b"org.apache.kafka.connect.errors.DataException: no device 17",
}
STREAMS = {
    "__streams.errors.exception": b"org.apache.kafka.common.errors.SerializationException",
    "__streams.errors.stacktrace": b"SerializationException: no device 17",
    "__streams.errors.message": b"no device 17",
    "__streams.errors.topic": b"orders",
    "__streams.errors.partition": b"3",
    "__streams.errors.offset": b"42",
}
SHARE_GROUP = {
    "__dlq.errors.topic": b"orders",
    "__dlq.errors.partition": b"3",
    "__dlq.errors.offset": b"42",
    "__dlq.errors.group": b"billing",
    "__dlq.errors.delivery.count": b"5",
    "__dlq.errors.message": b"delivery count limit",
}
FAMILIES = {
    Origin.SPRING: SPRING,
    Origin.KAFKA_CONNECT: CONNECT,
    Origin.KAFKA_STREAMS: STREAMS,
    Origin.SHARE_GROUP: SHARE_GROUP,
}
NAMES = sorted({name for family in (*FAMILIES.values(), SPRING_RETRY, SPRING_KEY) for name in family})


@pytest.mark.parametrize("origin", FAMILIES)
def test_each_says_where_the_message_was(origin: Origin) -> None:
    story = read_story(FAMILIES[origin])
    assert (story.topic, story.partition, story.offset) == ("orders", 3, 42)
    assert story.origin is origin


@pytest.mark.parametrize("origin", FAMILIES)
def test_what_the_message_had_itself_is_told_apart(origin: Origin) -> None:
    own = {"ts": b"1", "kafka_replyTopic": b"mine", "__connect": b"2"}
    assert original_headers({**own, **FAMILIES[origin]}) == own


def test_spring_writes_numbers_in_binary() -> None:
    story = read_story(SPRING)
    assert (story.timestamp_ms, story.group) == (1_700_000_000_000, "billing")
    assert (story.exception_class, story.exception_message) == (
        "java.lang.IllegalStateException",
        "Listener failed; no device 17",
    )
    assert story.stack_trace.endswith("com.acme.Billing.charge")


def test_on_retry_topics_of_spring_they_have_other_names() -> None:
    story = read_story(SPRING_RETRY)
    assert (story.topic, story.partition, story.offset, story.attempts) == ("orders", 3, 42, 4)
    assert (story.timestamp_ms, story.exception_message) == (1_700_000_000_000, "no device 17")


def test_a_key_that_spring_cannot_read_is_a_failure_too() -> None:
    assert read_story(SPRING_KEY).exception_message == "no UUID"


def test_kafka_connect_names_connector_task_and_stage() -> None:
    story = read_story(CONNECT)
    assert (story.handler, story.service_id, story.stage) == ("to-s3", "1", "VALUE_CONVERTER")
    assert story.exception_class == "org.apache.kafka.connect.errors.DataException"


def test_kafka_streams_names_the_exception() -> None:
    story = read_story(STREAMS)
    assert story.exception_class == "org.apache.kafka.common.errors.SerializationException"
    assert story.stack_trace == "SerializationException: no device 17"


def test_a_share_group_counts_deliveries() -> None:
    story = read_story(SHARE_GROUP)
    assert (story.group, story.attempts, story.exception_message) == ("billing", 5, "delivery count limit")


def test_they_are_grouped_as_ours_are() -> None:
    other = {**CONNECT, "__connect.errors.exception.message": b"no device 4"}
    assert read_story(CONNECT).fingerprint == read_story(other).fingerprint
    assert read_story(CONNECT).fingerprint == fingerprint(
        "org.apache.kafka.connect.errors.DataException", "no device 17"
    )


def test_our_own_story_is_the_last_and_keeps_theirs() -> None:
    story = FailureStory("orders.dlt", 0, 7, 0, "q", "g", "h", "failed", "KeyError", "x", "", 1, 0, 0, "f")
    letter = to_letter(Record("orders.dlt", 0, 7, 0, None, SPRING, b"data"), story)
    assert read_story(letter.headers) == story
    assert original_headers(letter.headers) == SPRING


@given(st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=50), min_size=1))
def test_hostile_bytes_can_always_be_shown(headers: Headers) -> None:
    story = read_story(headers)
    assert story.origin not in (Origin.SWITCHYARD, Origin.UNKNOWN)
    assert all(type(number) is int for number in (story.partition, story.offset, story.timestamp_ms, story.attempts))
    assert original_headers(headers).items() < headers.items()


def test_their_stack_traces_are_bounded() -> None:
    assert len(read_story({**CONNECT, "__connect.errors.exception.stacktrace": b"x" * 1_000_000}).stack_trace) == 8_000
