"""Record batches on disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.messages import QueueMessage, Record
from queuecore.providers.log.batch import (
    ANONYMOUS,
    HEADER_SIZE,
    BatchHeader,
    EncodedBody,
    Origin,
    decode_records,
    encode_body,
    encode_kept,
    is_whole,
    parse_header,
)
from queuecore.providers.options import Compression
from tests.unit.queuecore.test_log_columns import headers, keys, many, origins

messages = st.builds(QueueMessage, keys, st.binary(max_size=100), headers | origins)
batches = many(messages)
compressions = st.sampled_from(["none", "lz4", "zstd"])
numbers = st.integers(0, 2**62)
who = st.builds(Origin, st.integers(-1, 2**62), st.integers(0, 2**32 - 1), numbers, numbers)

FORMS: dict[str, list[QueueMessage]] = {
    "nothing but data": [QueueMessage(None, b"one"), QueueMessage(None, b"two")],
    "data of any length": [QueueMessage(None, b""), QueueMessage(None, b"x" * 1000)],
    "keys": [QueueMessage(b"k", b"1"), QueueMessage(None, b"2")],
    "headers": [QueueMessage(None, b"1", {"a": b"b"}), QueueMessage(None, b"2")],
    "producer": [QueueMessage(None, b"1", {"producerId": b"p", "ts": bytes(8)})],
    "all": [QueueMessage(b"k", b"1" * 9, {"a": b"b", "c": b""}), QueueMessage(None, b"")],
}


def raw_batch(encoded: EncodedBody, base: int = 0, at_ms: int = 0, origin: Origin = ANONYMOUS) -> bytes:
    return encoded.header(base, encoded.records, at_ms, origin).pack() + encoded.body


def whole_header(raw: bytes, position: int = 0) -> BatchHeader | None:
    header = parse_header(raw, position)
    return header if header is not None and is_whole(header, raw, position) else None


def as_sent(records: list[Record]) -> list[QueueMessage]:
    return [QueueMessage(one.key, one.data, dict(one.headers)) for one in records]


@given(batches, numbers, numbers, who, compressions, st.binary(max_size=30), st.binary(max_size=30))
def test_a_batch_comes_back_as_it_was(
    batch: list[QueueMessage],
    base: int,
    at_ms: int,
    origin: Origin,
    compression: Compression,
    before: bytes,
    behind: bytes,
) -> None:
    raw = raw_batch(encode_body(batch, compression), base, at_ms, origin)
    inside = before + raw + behind
    header = whole_header(inside, len(before))
    assert header is not None
    assert (header.size, header.base_offset, header.end_offset) == (len(raw), base, base + len(batch))
    assert (header.origin, header.compression, header.records) == (origin, compression, len(batch))
    records = decode_records(header, inside, len(before), "topic", 3)
    assert [(one.topic, one.partition, one.timestamp_ms) for one in records] == [("topic", 3, at_ms)] * len(batch)
    assert [one.offset for one in records] == list(range(base, base + len(batch)))
    assert as_sent(records) == batch


@given(batches, numbers, compressions, st.data())
def test_what_compaction_keeps_has_its_old_offsets_and_times(
    batch: list[QueueMessage], base: int, compression: Compression, data: st.DataObject
) -> None:
    count = len(batch)
    deltas = sorted(data.draw(st.sets(st.integers(0, 2**32 - 1), min_size=count, max_size=count)))
    times = data.draw(st.lists(numbers, min_size=count, max_size=count))
    kept = [
        Record("topic", 3, base + delta, at_ms, one.key, one.headers, one.data)
        for one, delta, at_ms in zip(batch, deltas, times, strict=True)
    ]
    encoded = encode_kept(kept, base, compression)
    span = deltas[-1] + 1 if deltas[-1] < 2**32 - 1 else deltas[-1]
    raw = encoded.header(base, span, max(times), ANONYMOUS).pack() + encoded.body
    header = whole_header(raw)
    assert header is not None
    assert (header.end_offset, header.records) == (base + span, count)
    assert decode_records(header, raw, 0, "topic", 3) == kept


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("form", FORMS)
def test_a_flipped_byte_anywhere_is_noticed(form: str, compression: Compression) -> None:
    raw = raw_batch(encode_body(FORMS[form], compression), 5, 7, Origin(1, 2, 3, 4))
    assert whole_header(raw) is not None
    for position in range(len(raw)):
        harmed = bytearray(raw)
        harmed[position] ^= 0x40
        assert whole_header(bytes(harmed)) is None, f"the byte at {position}"


@given(batches, compressions, st.data())
def test_any_change_of_any_byte_is_noticed(
    batch: list[QueueMessage], compression: Compression, data: st.DataObject
) -> None:
    raw = bytearray(raw_batch(encode_body(batch, compression)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    assert whole_header(bytes(raw)) is None


@given(batches, compressions, st.data())
def test_a_batch_that_is_cut_anywhere_is_not_whole(
    batch: list[QueueMessage], compression: Compression, data: st.DataObject
) -> None:
    raw = raw_batch(encode_body(batch, compression))
    assert whole_header(raw[: data.draw(st.integers(0, len(raw) - 1))]) is None


def test_a_header_can_be_trusted_without_its_body() -> None:
    raw = raw_batch(encode_body(FORMS["all"]), 40, 7)
    header = parse_header(raw[:HEADER_SIZE] + b"harmed")
    assert header is not None
    assert (header.base_offset, header.end_offset, header.timestamp) == (40, 42, 7)
    assert not is_whole(header, raw[:HEADER_SIZE] + b"harmed")


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compression_makes_it_smaller_and_is_told(compression: Compression) -> None:
    batch = [QueueMessage(None, b"the same again")] * 100
    plain, packed = encode_body(batch), encode_body(batch, compression)
    assert len(packed.body) < len(plain.body) / 10
    assert (packed.raw_size, plain.raw_size) == (len(plain.body), len(plain.body))


def test_a_batch_holds_at_least_one_message() -> None:
    with pytest.raises(ValueError, match="unpack"):
        encode_body([])


def test_the_format_is_what_is_already_on_disks() -> None:
    """When this has to change, raise the segment's version: files in the old format are out there."""
    raw = raw_batch(
        encode_body([QueueMessage(b"key", b"data", {"name": b"value"}), QueueMessage(None, b"")]),
        base=258,
        at_ms=1_700_000_000_000,
        origin=Origin(1, 2, 3, 4),
    )
    assert raw == bytes.fromhex(
        "53594232 4e18e12c 718c015d 30000000 30000000"  # magic, crc of the header, crc, size and raw size of the body
        "0201000000000000 02000000 02000000 0068e5cf8b010000"  # base offset, span, records, timestamp
        "0100000000000000 02000000 0300000000000000 0400000000000000"  # producer, epoch, sequence, transaction
        "28000000"  # not compressed, keys of any kind, headers of each record, data of any length
        "02 00 03000000 00000000 6b6579"  # keys: kinds, lengths, bytes
        "0f000000 00000000 0400 05000000 6e616d65 76616c7565"  # headers: lengths, and one name with its value
        "04000000 00000000 64617461"  # data: lengths, bytes
    )
