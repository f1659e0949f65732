"""Events as a provider stores them, in Arrow's arrays: no object of Python's is made for one."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from queuecore.messages import Record
from queuecore.providers.base import DataColumn
from workers.spark.numbers import numbers


class RawEvents(NamedTuple):
    """Events of one partition, in their order."""

    partition: int
    offsets: pa.Int64Array
    data: pa.BinaryArray

    @property
    def size(self) -> int:
        """In bytes."""
        size: int = pc.sum(pc.binary_length(self.data)).as_py() or 0
        return size

    def between(self, start: int, end: int) -> "RawEvents":
        """Those with offsets from the one up to the other."""
        first, behind = pc.search_sorted(self.offsets, pa.array([start, end], pa.int64()), side="left").to_pylist()
        if (first, behind) == (0, len(self.offsets)):
            return self
        return RawEvents(self.partition, self.offsets[first:behind], self.data[first:behind])


def of_records(partition: int, records: Sequence[Record]) -> RawEvents:
    offsets = pa.array([record.offset for record in records], pa.int64())
    return RawEvents(partition, offsets, pa.array([record.data for record in records], pa.binary()))


def of_column(partition: int, column: DataColumn) -> RawEvents:
    count = len(column.offsets)
    if isinstance(column.offsets, range):
        offsets = pc.add(numbers(count), column.offsets.start)
    else:
        offsets = pa.array(column.offsets, pa.int64())
    lengths = pa.Array.from_buffers(pa.uint32(), count, [None, pa.py_buffer(column.lengths)]).cast(pa.int32())
    bounds = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    buffers = [None, bounds.buffers()[1], pa.py_buffer(column.data)]
    return RawEvents(partition, offsets, pa.Array.from_buffers(pa.binary(), count, buffers))


def together(parts: Sequence[RawEvents]) -> RawEvents:
    """Of one partition, each behind the one before."""
    if len(parts) == 1:
        return parts[0]
    offsets, data = (pa.concat_arrays([part[column] for part in parts]) for column in (1, 2))
    return RawEvents(parts[0].partition, offsets, data)
