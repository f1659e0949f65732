"""Record batches on disk."""

from hypothesis import given
from hypothesis import strategies as st

from queuecore.messages import QueueMessage
from queuecore.providers.log.batch import (
    BatchHeader,
    decode_records,
    encode_batch,
    encoded_size,
    is_whole,
    parse_header,
)

keys = st.none() | st.uuids() | st.binary(max_size=40)
headers = st.dictionaries(st.text(max_size=10), st.binary(max_size=20), max_size=4)
messages = st.builds(QueueMessage, keys, st.binary(max_size=100), headers)
batches = st.lists(messages, min_size=1, max_size=5)
offsets = st.integers(0, 2**62)


def whole_header(raw: bytes) -> BatchHeader | None:
    header = parse_header(raw)
    return header if header is not None and is_whole(header, raw) else None


@given(batches, offsets, st.integers(0, 2**62), st.binary(max_size=30))
def test_a_batch_comes_back_as_it_was(batch: list[QueueMessage], base: int, now_ms: int, behind: bytes) -> None:
    raw = encode_batch(base, now_ms, batch)
    header = whole_header(raw + behind)
    assert header is not None
    assert (header.size, header.base_offset, header.end_offset) == (len(raw), base, base + len(batch))
    records = list(decode_records(header, raw + behind, "topic", 3))
    assert [(one.topic, one.partition, one.timestamp_ms) for one in records] == [("topic", 3, now_ms)] * len(batch)
    assert [one.offset for one in records] == list(range(base, base + len(batch)))
    assert [QueueMessage(one.key, one.data, one.headers) for one in records] == [
        QueueMessage(one.key, one.data, dict(one.headers)) for one in batch
    ]


@given(batches, offsets, st.data())
def test_any_flipped_byte_is_noticed(batch: list[QueueMessage], base: int, data: st.DataObject) -> None:
    raw = bytearray(encode_batch(base, 0, batch))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    assert whole_header(bytes(raw)) is None


@given(batches, st.data())
def test_a_batch_that_is_cut_anywhere_is_not_whole(batch: list[QueueMessage], data: st.DataObject) -> None:
    raw = encode_batch(0, 0, batch)
    assert whole_header(raw[: data.draw(st.integers(0, len(raw) - 1))]) is None


@given(messages)
def test_the_size_is_what_a_message_adds_to_its_batch(message: QueueMessage) -> None:
    assert len(encode_batch(0, 0, [message, message])) - len(encode_batch(0, 0, [message])) == encoded_size(message)
