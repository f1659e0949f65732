"""How a batch of records looks on disk: by columns, so that C code moves whole columns at a time.

    batch  = header body
    header = magic(4) header_crc(4) body_crc(4) body_size(4) raw_size(4)
             base_offset(8) span(4) records(4) timestamp(8)
             producer(8) epoch(4) sequence(8) transaction(8) attributes(4)
    body   = [offset_delta(4)*] [timestamp(8)*] keys headers data          compressed as a whole, if at all

Integers are little-endian. `header_crc` covers the header behind it, `body_crc` the body: a batch is whole or it is
not there, and headers can be trusted without reading bodies. Offsets run from `base_offset` without gaps unless there
are offset deltas (after compaction); the batch stands for the offsets up to `base_offset + span`, whatever is left of
them. `timestamp` is every record's, or the largest where there is a column of them.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Final, NamedTuple, cast

import lz4.block
import zstandard

from queuecore.messages import Headers, Key, QueueMessage, Record
from queuecore.providers.base import DataColumn
from queuecore.providers.log.columns import (
    HeaderColumn,
    KeyColumn,
    cut_data,
    decode_data,
    decode_headers,
    decode_int64s,
    decode_keys,
    decode_uint32s,
    encode_data,
    encode_headers,
    encode_keys,
    int64_column,
    uint32_column,
)
from queuecore.providers.options import Compression

MAGIC: Final = b"SYB2"
_FIRST = struct.Struct("<4sI")
_REST = struct.Struct("<IIIqIIqqIqqI")
HEADER_SIZE: Final = _FIRST.size + _REST.size

NO_PRODUCER: Final = -1
NO_TRANSACTION: Final = 0

_COLUMNS = itemgetter(0), itemgetter(1), itemgetter(2)

# Attributes: two bits each for compression, keys and headers, one each for the rest.
_KEYS_SHIFT, _HEADERS_SHIFT, _DATA_SHIFT = 2, 4, 6
_TWO_BITS = 0b11
_HAS_OFFSETS, _HAS_TIMESTAMPS = 1 << 7, 1 << 8

_CODECS: Final[Sequence[Compression]] = ("none", "lz4", "zstd")
_COMPRESS: Final[Mapping[Compression, Callable[[bytes], bytes]]] = {
    "lz4": lambda raw: lz4.block.compress(raw, store_size=False),
    "zstd": lambda raw: zstandard.compress(raw, 3),
}
_DECOMPRESS: Final[Mapping[Compression, Callable[[bytes, int], bytes]]] = {
    "lz4": lambda body, size: lz4.block.decompress(body, uncompressed_size=size),
    "zstd": lambda body, size: zstandard.decompress(body, max_output_size=size),
}


class Origin(NamedTuple):
    """Who wrote a batch: what makes a retried one recognisable, and ties it to a transaction."""

    producer: int = NO_PRODUCER
    epoch: int = 0
    sequence: int = 0
    transaction: int = NO_TRANSACTION


ANONYMOUS: Final = Origin()


class BatchHeader(NamedTuple):
    body_crc: int
    body_size: int
    raw_size: int
    base_offset: int
    span: int
    records: int
    timestamp: int
    producer: int
    epoch: int
    sequence: int
    transaction: int
    attributes: int

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.span

    @property
    def size(self) -> int:
        return HEADER_SIZE + self.body_size

    @property
    def origin(self) -> Origin:
        return Origin(self.producer, self.epoch, self.sequence, self.transaction)

    @property
    def compression(self) -> Compression:
        return _CODECS[self.attributes & _TWO_BITS]

    def pack(self) -> bytes:
        rest = _REST.pack(*self)
        return _FIRST.pack(MAGIC, zlib.crc32(rest)) + rest


class EncodedBody(NamedTuple):
    """Everything of a batch but its place in the partition, which is known only under the partition's lock."""

    body: bytes
    body_crc: int
    raw_size: int
    records: int
    attributes: int

    def header(self, base_offset: int, span: int, timestamp_ms: int, origin: Origin) -> BatchHeader:
        return BatchHeader(
            self.body_crc, len(self.body), self.raw_size, base_offset, span, self.records, timestamp_ms, *origin,
            self.attributes,
        )  # fmt: skip


# Stands for offsets whose records are all gone.
NO_RECORDS: Final = EncodedBody(b"", 0, 0, 0, 0)


class BatchSource(NamedTuple):
    """The parts of a batch's records that most readers never touch."""

    topic: str
    partition: int
    keys: KeyColumn
    all_headers: HeaderColumn

    def key(self, index: int) -> Key:
        return self.keys.at(index)

    def headers(self, index: int) -> Headers:
        return self.all_headers.at(index)


def encode_body(messages: Sequence[QueueMessage], compression: Compression = "none") -> EncodedBody:
    """The messages, at least one, as a batch. TypeError, ValueError, AttributeError, OverflowError or struct.error
    where one cannot be encoded."""
    return _assemble(messages, b"", 0, compression)


def encode_kept(records: Sequence[Record], base_offset: int, compression: Compression) -> EncodedBody:
    """What compaction kept: offsets and timestamps become columns."""
    offsets = uint32_column(record.offset - base_offset for record in records)
    timestamps = int64_column(record.timestamp_ms for record in records)
    messages = [QueueMessage(record.key, record.data, record.headers) for record in records]
    return _assemble(messages, offsets + timestamps, _HAS_OFFSETS | _HAS_TIMESTAMPS, compression)


def parse_header(raw: bytes, position: int = 0) -> BatchHeader | None:
    """The header, or None where these bytes do not begin a batch, or a harmed one."""
    if len(raw) - position < HEADER_SIZE:
        return None
    magic, crc = _FIRST.unpack_from(raw, position)
    checked = position + _FIRST.size
    if magic != MAGIC or zlib.crc32(memoryview(raw)[checked : checked + _REST.size]) != crc:
        return None
    return BatchHeader._make(_REST.unpack_from(raw, checked))


def is_whole(header: BatchHeader, raw: bytes, position: int = 0) -> bool:
    """Whether the body of the batch that begins at this position is all there, unharmed."""
    body = memoryview(raw)[position + HEADER_SIZE : position + header.size]
    return len(body) == header.body_size and zlib.crc32(body) == header.body_crc


def decode_records(header: BatchHeader, raw: bytes, position: int, topic: str, partition: int) -> list[Record]:
    """The records of the batch that begins at this position, and is whole."""
    body, count = _open(header, raw, position), header.records
    data = decode_data(header.attributes >> _DATA_SHIFT & 1, body.raw, body.data_at, count)
    source = BatchSource(topic, partition, body.keys, body.headers)
    columns = zip(body.offsets, body.timestamps, data, range(count), repeat(source))
    return list(map(tuple.__new__, repeat(Record), columns))


def decode_data_column(header: BatchHeader, raw: bytes, position: int) -> DataColumn:
    """What `decode_records` would have of data."""
    body = _open(header, raw, position)
    form = header.attributes >> _DATA_SHIFT & 1
    return DataColumn(body.offsets, *cut_data(form, body.raw, body.data_at, header.records, body.end))


class _Body(NamedTuple):
    """What is before the data, and where these begin and end."""

    offsets: Sequence[int]
    timestamps: Iterable[int]
    keys: KeyColumn
    headers: HeaderColumn
    raw: bytes
    data_at: int
    end: int


def _open(header: BatchHeader, raw: bytes, position: int) -> _Body:
    count, attributes = header.records, header.attributes
    position += HEADER_SIZE
    end = position + header.body_size
    if header.compression != "none":
        raw = _DECOMPRESS[header.compression](raw[position:end], header.raw_size)
        position, end = 0, len(raw)
    offsets: Sequence[int] = range(header.base_offset, header.base_offset + count)
    timestamps: Iterable[int] = repeat(header.timestamp)
    if attributes & _HAS_OFFSETS:
        deltas, position = decode_uint32s(raw, position, count)
        offsets = [header.base_offset + delta for delta in deltas]
    if attributes & _HAS_TIMESTAMPS:
        timestamps, position = decode_int64s(raw, position, count)
    keys, position = decode_keys(attributes >> _KEYS_SHIFT & _TWO_BITS, raw, position, count)
    headers, position = decode_headers(attributes >> _HEADERS_SHIFT & _TWO_BITS, raw, position, count)
    return _Body(offsets, timestamps, keys, headers, raw, position, end)


def keys_as_bytes(records: Sequence[Record]) -> Sequence[bytes | None]:
    """The keys of all the records that `decode_records` made of one batch, without making UUIDs."""
    return cast(BatchSource, records[0][4]).keys.as_bytes(len(records)) if records else ()


def _assemble(
    messages: Sequence[QueueMessage], first_columns: bytes, attributes: int, compression: Compression
) -> EncodedBody:
    keys, data, headers = (list(map(column, messages)) for column in _COLUMNS)
    key_form, key_column = encode_keys(keys)
    header_form, header_column = encode_headers(headers)
    data_form, lengths = encode_data(data)
    raw = body = b"".join((first_columns, key_column, header_column, lengths, *data))
    if compression != "none":
        body = _COMPRESS[compression](raw)
    attributes |= _CODECS.index(compression) | key_form << _KEYS_SHIFT | header_form << _HEADERS_SHIFT
    return EncodedBody(body, zlib.crc32(body), len(raw), len(keys), attributes | data_form << _DATA_SHIFT)
