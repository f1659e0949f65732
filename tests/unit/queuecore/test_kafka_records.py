"""Between Kafka's messages and ours."""

import pickle
from uuid import UUID, uuid4

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from queuecore.messages import TOMBSTONE, UNKNOWN_OFFSET, Key, QueueMessage, Record, RecordMetadata
from queuecore.providers.kafka.decoding import decode_key, to_records
from queuecore.providers.kafka.records import encode, to_metadata


def stored(
    value: bytes | None, key: bytes | None = None, headers: list[tuple[str, str | bytes | None]] | None = None
) -> Message:
    when = (TIMESTAMP_CREATE_TIME, 1_700_000_000_000)
    return Message(topic="topic", partition=3, offset=7, key=key, value=value, headers=headers, timestamp=when)


@pytest.mark.parametrize(
    "key", [UUID("784f394c-42b6-435a-983c-b7beff2784f9"), b"device-7", b"", b"784f394c", b"\xff" * 36, None], ids=repr
)
def test_a_key_survives(key: Key) -> None:
    assert decode_key(encode(QueueMessage(key, b""))[0]) == key


def test_a_uuid_key_is_written_as_text() -> None:
    text = b"784f394c-42b6-435a-983c-b7beff2784f9"
    assert encode(QueueMessage(UUID(text.decode()), b""))[0] == text
    assert decode_key(text.upper()) == text.upper()
    assert decode_key(text.replace(b"-", b"")) == text.replace(b"-", b"")


@pytest.mark.parametrize("name", ["a\0b", "\udc80"], ids=repr)
def test_a_header_name_the_library_would_spoil_is_refused(name: str) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=r"NUL|surrogates"):
            encode(QueueMessage(None, b"x", {name: b""}))


def test_the_size_counts_key_headers_and_data_as_they_are_sent() -> None:
    assert encode(QueueMessage(uuid4(), b"12345"))[3] == 36 + 5
    assert encode(QueueMessage(b"12", b"", {"größe": b"123"}))[3] == 2 + 7 + 3


def test_a_tombstone_is_a_message_without_a_value() -> None:
    plain = encode(QueueMessage.tombstone(b"key"))
    assert plain[:3] == (b"key", None, {})
    with_more = encode(QueueMessage(b"key", b"", {TOMBSTONE: b"", "ts": b"1"}))
    assert with_more[1:3] == (None, {"ts": b"1"})


def test_only_an_empty_message_is_a_tombstone() -> None:
    marked = encode(QueueMessage(b"key", b"data", {TOMBSTONE: b""}))
    assert marked[1:3] == (b"data", {TOMBSTONE: b""})
    empty = encode(QueueMessage(b"key", b""))
    assert empty[1:3] == (b"", None)


def test_a_message_without_a_value_reads_as_a_tombstone() -> None:
    removed, empty, kept = to_records([stored(None, b"key", [("ts", b"1")]), stored(b""), stored(b"data")])
    assert (removed.data, removed.is_tombstone, dict(removed.headers)) == (b"", True, {"ts": b"1", TOMBSTONE: b""})
    assert (empty.data, empty.is_tombstone) == (b"", False)
    assert (kept.data, kept.is_tombstone) == (b"data", False)


def test_a_record_has_all_of_its_message() -> None:
    key = uuid4()
    [record] = to_records([stored(b"data", str(key).encode(), [("a", b"1"), ("a", b"2"), ("b", None)])])
    expected = Record("topic", 3, 7, 1_700_000_000_000, key, headers={"a": b"2", "b": b""}, data=b"data")
    assert record == expected
    assert pickle.loads(pickle.dumps(record)) == expected  # noqa: S301


def test_an_offset_nobody_knows() -> None:
    when = (TIMESTAMP_CREATE_TIME, 5)
    unknown = Message(topic="topic", partition=3, offset=-1001, timestamp=when)
    assert to_metadata(unknown) == RecordMetadata("topic", 3, UNKNOWN_OFFSET, 5)
    assert to_metadata(stored(b"")) == RecordMetadata("topic", 3, 7, 1_700_000_000_000)
