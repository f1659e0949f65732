"""How record batches look on disk.

    batch  = magic(4) crc32(4) body_length(4) base_offset(8) count(4) body
    record = timestamp_ms(8) key_kind(1) key_length(4) header_count(2) data_length(4) key header* data
    header = name_length(2) value_length(4) name value

All integers are little-endian. The checksum covers everything behind it, so a batch is whole or it is not there.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from queuecore.messages import NO_HEADERS, Key, QueueMessage, Record

MAGIC = b"SYB1"
HEADER = struct.Struct("<4sIIqI")
_AFTER_CRC = 8
_RECORD = struct.Struct("<qBIHI")
_RECORD_HEADER = struct.Struct("<HI")

_NO_KEY, _UUID_KEY, _BYTES_KEY = 0, 1, 2


@dataclass(frozen=True, slots=True)
class BatchHeader:
    crc: int
    body_length: int
    base_offset: int
    count: int

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.count

    @property
    def size(self) -> int:
        return HEADER.size + self.body_length


def encode_batch(base_offset: int, timestamp_ms: int, messages: Sequence[QueueMessage]) -> bytes:
    body = b"".join(_encode_record(timestamp_ms, message) for message in messages)
    unsigned = HEADER.pack(MAGIC, 0, len(body), base_offset, len(messages)) + body
    return MAGIC + struct.pack("<I", zlib.crc32(unsigned[_AFTER_CRC:])) + unsigned[_AFTER_CRC:]


def parse_header(raw: bytes) -> BatchHeader | None:
    """The header, or None where these bytes do not begin a batch."""
    if len(raw) < HEADER.size:
        return None
    magic, crc, length, base_offset, count = HEADER.unpack_from(raw)
    return BatchHeader(crc, length, base_offset, count) if magic == MAGIC else None


def is_whole(header: BatchHeader, raw: bytes) -> bool:
    """Whether `raw`, which begins at the batch's first byte, holds all of it unharmed."""
    return len(raw) >= header.size and zlib.crc32(raw[_AFTER_CRC : header.size]) == header.crc


def decode_records(header: BatchHeader, raw: bytes, topic: str, partition: int) -> Iterator[Record]:
    position = HEADER.size
    for index in range(header.count):
        timestamp_ms, kind, key_length, header_count, data_length = _RECORD.unpack_from(raw, position)
        position += _RECORD.size
        key = _decode_key(kind, raw[position : position + key_length])
        position += key_length
        headers, position = _decode_headers(raw, position, header_count)
        data = raw[position : position + data_length]
        position += data_length
        yield Record(topic, partition, header.base_offset + index, timestamp_ms, key, headers, data)


def encoded_size(message: QueueMessage) -> int:
    return len(_encode_record(0, message))


def _encode_record(timestamp_ms: int, message: QueueMessage) -> bytes:
    kind, key = _encode_key(message.key)
    fixed = _RECORD.pack(timestamp_ms, kind, len(key), len(message.headers), len(message.data))
    if not message.headers:
        return b"".join((fixed, key, message.data))
    return b"".join((fixed, key, *_encode_headers(message), message.data))


def _encode_headers(message: QueueMessage) -> Iterator[bytes]:
    for name, value in message.headers.items():
        encoded = name.encode()
        yield _RECORD_HEADER.pack(len(encoded), len(value))
        yield encoded
        yield value


def _encode_key(key: Key) -> tuple[int, bytes]:
    if key is None:
        return _NO_KEY, b""
    return (_UUID_KEY, key.bytes) if isinstance(key, UUID) else (_BYTES_KEY, key)


def _decode_key(kind: int, raw: bytes) -> Key:
    if kind == _NO_KEY:
        return None
    return UUID(bytes=raw) if kind == _UUID_KEY else raw


def _decode_headers(raw: bytes, position: int, count: int) -> tuple[dict[str, bytes], int]:
    if not count:
        return dict(NO_HEADERS), position
    headers = {}
    for _ in range(count):
        name_length, value_length = _RECORD_HEADER.unpack_from(raw, position)
        position += _RECORD_HEADER.size
        name = raw[position : position + name_length].decode()
        position += name_length
        headers[name] = raw[position : position + value_length]
        position += value_length
    return headers, position
