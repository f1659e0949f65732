"""Columns of a batch: keys, headers and data of many records, each column in one piece.

    keys    = nothing | uuid(16)* | kind(1)* blobs
    headers = nothing | same_length(4) entries | blobs | id_length(4) producer_id ts(8)*
    data    = length(4) bytes*          if all are equally long, else blobs
    blobs   = length(4)* bytes*
    entries = (name_length(2) value_length(4) name value)*

Integers are little-endian. Which form a column has is a small number, kept in the batch's attributes. The last form of
headers is what most producers send, `producerId` and `ts`, without a dictionary per record.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol
from uuid import UUID

from queuecore.messages import NO_HEADERS, PRODUCER_ID, TIMESTAMP, Headers, Key, decode_millis, encode_millis

_LENGTH = struct.Struct("<I")
_ENTRY = struct.Struct("<HI")
_KIND_NONE, _KIND_UUID, _KIND_BYTES = 0, 1, 2
_ORIGIN = frozenset((PRODUCER_ID, TIMESTAMP))
_MILLIS_BYTES = 8


class KeyForm(IntEnum):
    NONE = 0
    UUID = 1
    MIXED = 2


class HeaderForm(IntEnum):
    NONE = 0
    SAME = 1
    EACH = 2
    ORIGIN = 3


class DataForm(IntEnum):
    EACH = 0
    ALIKE = 1


class KeyColumn(Protocol):
    def at(self, index: int) -> Key: ...

    def as_bytes(self, count: int) -> Sequence[bytes | None]:
        """All keys' bytes, of UUIDs too, without making those: what compaction tells keys apart by."""


class HeaderColumn(Protocol):
    def at(self, index: int) -> Headers: ...


class NoKeys:
    def at(self, index: int) -> Key:  # noqa: ARG002
        return None

    def as_bytes(self, count: int) -> Sequence[bytes | None]:
        return [None] * count


class UuidKeys(NamedTuple):
    column: bytes

    def at(self, index: int) -> Key:
        return UUID(bytes=self.column[16 * index : 16 * index + 16])

    def as_bytes(self, count: int) -> Sequence[bytes | None]:
        return _equal_parts(16, count).unpack(self.column)


class MixedKeys(NamedTuple):
    kinds: bytes
    blobs: Sequence[bytes]

    def at(self, index: int) -> Key:
        kind = self.kinds[index]
        if kind == _KIND_NONE:
            return None
        return UUID(bytes=self.blobs[index]) if kind == _KIND_UUID else self.blobs[index]

    def as_bytes(self, count: int) -> Sequence[bytes | None]:
        if _KIND_NONE not in self.kinds:
            return self.blobs
        return [self.blobs[index] if self.kinds[index] != _KIND_NONE else None for index in range(count)]


class NoHeaders:
    def at(self, index: int) -> Headers:  # noqa: ARG002
        return NO_HEADERS


class SameHeaders(NamedTuple):
    entries: bytes

    def at(self, index: int) -> Headers:  # noqa: ARG002
        return _decode_entries(self.entries)


class EachHeaders(NamedTuple):
    blobs: Sequence[bytes]

    def at(self, index: int) -> Headers:
        return _decode_entries(self.blobs[index])


class OriginHeaders(NamedTuple):
    producer_id: bytes
    stamps: Sequence[int]

    def at(self, index: int) -> Headers:
        return {PRODUCER_ID: self.producer_id, TIMESTAMP: encode_millis(self.stamps[index])}


def encode_keys(keys: Sequence[Key]) -> tuple[KeyForm, bytes]:
    types = set(map(type, keys))
    if types == {type(None)}:
        return KeyForm.NONE, b""
    if types == {UUID}:
        return KeyForm.UUID, b"".join([key.int.to_bytes(16) for key in keys])  # type: ignore[union-attr]
    kinds, blobs = zip(*map(_encode_key, keys), strict=True)
    return KeyForm.MIXED, bytes(kinds) + encode_blobs(blobs)


def decode_keys(form: int, raw: bytes, position: int, count: int) -> tuple[KeyColumn, int]:
    if form == KeyForm.NONE:
        return _NO_KEYS, position
    if form == KeyForm.UUID:
        return UuidKeys(raw[position : position + 16 * count]), position + 16 * count
    kinds = raw[position : position + count]
    blobs, position = decode_blobs(raw, position + count, count)
    return MixedKeys(kinds, blobs), position


def encode_headers(headers: Sequence[Headers]) -> tuple[HeaderForm, bytes]:
    first = headers[0]
    if not any(headers):
        return HeaderForm.NONE, b""
    if _have_origin(headers):
        producer_id = first[PRODUCER_ID]
        stamps = int64_column([decode_millis(one[TIMESTAMP]) for one in headers])
        return HeaderForm.ORIGIN, _LENGTH.pack(len(producer_id)) + producer_id + stamps
    if all(one is first for one in headers):
        entries = _encode_entries(first)
        return HeaderForm.SAME, _LENGTH.pack(len(entries)) + entries
    return HeaderForm.EACH, encode_blobs(list(map(_encode_entries, headers)))


def decode_headers(form: int, raw: bytes, position: int, count: int) -> tuple[HeaderColumn, int]:
    if form == HeaderForm.NONE:
        return _NO_HEADERS, position
    if form == HeaderForm.EACH:
        blobs, position = decode_blobs(raw, position, count)
        return EachHeaders(blobs), position
    (length,) = _LENGTH.unpack_from(raw, position)
    position += _LENGTH.size
    start, position = position, position + length
    if form == HeaderForm.SAME:
        return SameHeaders(raw[start:position]), position
    stamps, end = decode_int64s(raw, position, count)
    return OriginHeaders(raw[start:position], stamps), end


def encode_data(data: Sequence[bytes]) -> tuple[DataForm, bytes]:
    """Only the lengths; the data follow as they are."""
    lengths = set(map(len, data))
    if len(lengths) == 1:
        return DataForm.ALIKE, _LENGTH.pack(lengths.pop())
    return DataForm.EACH, uint32_column(map(len, data))


def decode_data(form: int, raw: bytes, position: int, count: int) -> Sequence[bytes]:
    if form == DataForm.EACH:
        return decode_blobs(raw, position, count)[0]
    (length,) = _LENGTH.unpack_from(raw, position)
    return _equal_parts(length, count).unpack_from(raw, position + _LENGTH.size)


def cut_data(form: int, raw: bytes, position: int, count: int, end: int) -> tuple[bytes, memoryview]:
    """The lengths as a column of their own, and all data, which end there, as they are."""
    if form == DataForm.EACH:
        lengths = raw[position : position + _LENGTH.size * count]
        return lengths, memoryview(raw)[position + len(lengths) : end]
    length = raw[position : position + _LENGTH.size]
    return length * count, memoryview(raw)[position + len(length) : end]


def encode_blobs(blobs: Sequence[bytes]) -> bytes:
    return b"".join((uint32_column(map(len, blobs)), *blobs))


def decode_blobs(raw: bytes, position: int, count: int) -> tuple[Sequence[bytes], int]:
    lengths, position = decode_uint32s(raw, position, count)
    if count < _FEW:
        ends = list(accumulate(lengths, initial=position))
        return [raw[start:end] for start, end in pairwise(ends)], ends[-1]
    # One C call cuts the whole column, several times faster than a slice per record.
    parts = struct.Struct("%ds" * count % tuple(lengths))
    return parts.unpack_from(raw, position), position + parts.size


def uint32_column(values: Iterable[int]) -> bytes:
    return _little_endian(array("I", values))


def int64_column(values: Iterable[int]) -> bytes:
    return _little_endian(array("q", values))


def decode_uint32s(raw: bytes, position: int, count: int) -> tuple[Sequence[int], int]:
    return struct.unpack_from(f"<{count}I", raw, position), position + 4 * count


def decode_int64s(raw: bytes, position: int, count: int) -> tuple[Sequence[int], int]:
    return struct.unpack_from(f"<{count}q", raw, position), position + 8 * count


_FEW = 8
_NO_KEYS = NoKeys()
_NO_HEADERS = NoHeaders()


@lru_cache(maxsize=64)
def _equal_parts(length: int, count: int) -> struct.Struct:
    return struct.Struct(f"{length}s" * count)


def _little_endian(column: "array[int]") -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _encode_key(key: Key) -> tuple[int, bytes]:
    if key is None:
        return _KIND_NONE, b""
    return (_KIND_UUID, key.bytes) if isinstance(key, UUID) else (_KIND_BYTES, key)


def _have_origin(headers: Sequence[Headers]) -> bool:
    """Whether every record has just the two headers of a producer's, one producer's, in the form they should have."""
    producer_id = headers[0].get(PRODUCER_ID)
    return producer_id is not None and all(
        len(one) == len(_ORIGIN)
        and one.get(PRODUCER_ID) == producer_id
        and len(one.get(TIMESTAMP, b"")) == _MILLIS_BYTES
        for one in headers
    )


def _encode_entries(headers: Headers) -> bytes:
    parts = []
    for name, value in headers.items():
        encoded = name.encode()
        parts += [_ENTRY.pack(len(encoded), len(value)), encoded, value]
    return b"".join(parts)


def _decode_entries(raw: bytes) -> Headers:
    headers = {}
    position = 0
    while position < len(raw):
        name_length, value_length = _ENTRY.unpack_from(raw, position)
        position += _ENTRY.size
        name = raw[position : position + name_length].decode()
        position += name_length
        headers[name] = raw[position : position + value_length]
        position += value_length
    return headers
