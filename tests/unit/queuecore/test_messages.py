"""What a message and a record are, and the small wire forms of headers."""

import pickle
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.messages import (
    NO_HEADERS,
    TOMBSTONE,
    QueueMessage,
    Record,
    decode_millis,
    encode_millis,
    text_header,
)
from queuecore.providers.log.batch import ANONYMOUS, decode_records, encode_body

KEY = UUID(int=7)


def record(**changes: object) -> Record:
    parts = {
        "topic": "a.topic",
        "partition": 3,
        "offset": 40,
        "timestamp_ms": 50,
        "key": KEY,
        "headers": {"h": b"1"},
        "data": b"data",
    }
    return Record(**{**parts, **changes})  # type: ignore[arg-type]


def stored(message: QueueMessage) -> Record:
    """The record as the log gives it back: its key and headers are decoded when they are touched."""
    encoded = encode_body([QueueMessage(None, b"another"), message])
    header = encoded.header(39, 2, 50, ANONYMOUS)
    return decode_records(header, header.pack() + encoded.body, 0, "a.topic", 3)[1]


def test_a_record_has_the_messages_parts_and_its_place() -> None:
    one = record()
    assert (one.topic, one.partition, one.offset, one.timestamp_ms) == ("a.topic", 3, 40, 50)
    assert (one.key, one.headers, one.data, one.size) == (KEY, {"h": b"1"}, b"data", 4)
    assert "a.topic[3]@40" in repr(one)


def test_records_are_equal_when_all_their_parts_are_wherever_they_came_from() -> None:
    from_a_batch = stored(QueueMessage(KEY, b"data", {"h": b"1"}))
    assert from_a_batch == record()
    assert (from_a_batch != record()) is False
    assert hash(from_a_batch) == hash(record())
    assert record() != tuple(record())


@pytest.mark.parametrize(
    "change",
    [
        {"topic": "other"},
        {"partition": 4},
        {"offset": 41},
        {"timestamp_ms": 51},
        {"key": b"other"},
        {"headers": {}},
        {"data": b"other"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_records_that_differ_in_one_part_are_not_equal(change: dict[str, object]) -> None:
    assert record(**change) != record()
    assert (record(**change) == record()) is False


@pytest.mark.parametrize("one", [record(), stored(QueueMessage(b"k", b"data", {"h": b"1"}))], ids=["made", "stored"])
def test_a_record_survives_pickling_with_every_part(one: Record) -> None:
    again = pickle.loads(pickle.dumps(one))  # noqa: S301 our own bytes
    assert again == one
    assert again.headers == one.headers


def test_a_tombstone_is_a_message_without_data_that_says_so() -> None:
    assert stored(QueueMessage.tombstone(KEY)).is_tombstone
    assert QueueMessage.tombstone(KEY).key == KEY
    assert not stored(QueueMessage(KEY, b"")).is_tombstone, "empty data alone is a value"
    assert not stored(QueueMessage(KEY, b"data", {TOMBSTONE: b""})).is_tombstone, "data are not nothing"


def test_a_message_without_headers_has_none_that_could_be_changed_for_all() -> None:
    assert QueueMessage(None, b"").headers is NO_HEADERS
    with pytest.raises(TypeError):
        QueueMessage(None, b"").headers["x"] = b""  # type: ignore[index]


@given(st.integers(-(2**63), 2**63 - 1))
def test_milliseconds_survive_the_wire(value: int) -> None:
    assert decode_millis(encode_millis(value)) == value


def test_milliseconds_are_big_endian() -> None:
    assert encode_millis(1_700_000_000_000) == bytes.fromhex("0000018bcfe56800")


@pytest.mark.parametrize(("raw", "text"), [(b"node-1", "node-1"), (b"", ""), (b"\xff", "\N{REPLACEMENT CHARACTER}")])
def test_a_text_header_is_always_readable(raw: bytes, text: str) -> None:
    assert text_header({"producerId": raw}, "producerId") == text
    assert text_header({}, "producerId") is None
