"""Events as a provider stores them, in Arrow's arrays: no object of Python's is made for one."""

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from queuecore.messages import Record
from queuecore.providers.base import DataColumn
from workers.spark.numbers import numbers

# Of a length in a column of data.
_LENGTH_BYTES: Final = 4


class RawEvents(NamedTuple):
    """Events of one partition, in their order."""

    partition: int
    offsets: pa.Int64Array
    data: pa.BinaryArray

    def between(self, start: int, end: int) -> "RawEvents":
        """Those with offsets from the one up to the other."""
        first, behind = pc.search_sorted(self.offsets, pa.array([start, end], pa.int64()), side="left").to_pylist()
        if (first, behind) == (0, len(self.offsets)):
            return self
        return RawEvents(self.partition, self.offsets[first:behind], self.data[first:behind])


def raw_events(partition: int, columns: Sequence[DataColumn]) -> RawEvents:
    """What the columns have, each behind the one before. They are put together before Arrow sees them: its calls take
    as long for a batch of two events as for thousands."""
    offsets, lengths, data = columns[0] if len(columns) == 1 else _together(columns)
    count = len(offsets)
    numbered = pc.add(numbers(count), offsets.start) if isinstance(offsets, range) else pa.array(offsets, pa.int64())
    sizes = pa.Array.from_buffers(pa.uint32(), count, [None, pa.py_buffer(lengths)]).cast(pa.int32())
    bounds = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(sizes)])
    buffers = [None, bounds.buffers()[1], pa.py_buffer(data)]
    return RawEvents(partition, numbered, pa.Array.from_buffers(pa.binary(), count, buffers))


def columns_of(records: Sequence[Record], most_bytes: int) -> Iterator[DataColumn]:
    """The records' data: columns of so many bytes, or of one record."""
    start, size = 0, 0
    for index, record in enumerate(records):
        if start < index and size + len(record.data) > most_bytes:
            yield _column(records[start:index])
            start, size = index, 0
        size += len(record.data)
    if records:
        yield _column(records[start:])


def cut(column: DataColumn, start: int, end: int) -> DataColumn:
    """What it has of the offsets from the one up to the other."""
    offsets = column.offsets
    if start <= offsets[0] and offsets[-1] < end:
        return column
    first, behind = bisect_left(offsets, start), bisect_left(offsets, end)
    lengths = struct.unpack(f"<{len(offsets)}I", column.lengths)
    at, size = sum(lengths[:first]), sum(lengths[first:behind])
    wanted = column.lengths[_LENGTH_BYTES * first : _LENGTH_BYTES * behind]
    return DataColumn(offsets[first:behind], wanted, column.data[at : at + size])


def _together(columns: Sequence[DataColumn]) -> DataColumn:
    offsets, lengths, data = zip(*columns, strict=True)
    everything = range(offsets[0][0], offsets[-1][-1] + 1)
    has_gaps = len(everything) != sum(map(len, offsets))
    numbered = list(chain.from_iterable(offsets)) if has_gaps else everything
    return DataColumn(numbered, b"".join(lengths), memoryview(b"".join(data)))


def _column(records: Sequence[Record]) -> DataColumn:
    data = [record.data for record in records]
    lengths = struct.pack(f"<{len(data)}I", *map(len, data))
    return DataColumn([record.offset for record in records], lengths, memoryview(b"".join(data)))
