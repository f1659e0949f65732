"""Protobuf's wire format, read by many messages in step: each stands at its own place in one buffer, and all take the
next field at the same time. So a field costs a few of Arrow's kernels, and there is no Python object for a value.

That works for messages as serialisers write them: fields in the order of their numbers, each once, and none that is not
asked for. All else is Irregular, for `columns` to read.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workers.spark.columns import Irregular
from workers.spark.numbers import numbers

_VARINT, _BYTES = 0, 2
# Larger numbers are none of ours; negative ones have ten bytes.
_LONGEST_VARINT: Final = 8
# Fields from 16 on have longer keys.
_LARGEST_FIELD: Final = 15
_LARGEST_BUFFER: Final = 1 << 30


class Spans(NamedTuple):
    """Parts of the buffer, one for each message: from where, and up to where."""

    start: pa.Array
    end: pa.Array


class Buffer:
    """Messages behind each other."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        # One more, so that there is a byte behind the last: who has read all of a message looks at what comes next.
        try:
            column = pa.array((*messages, b"\0"), pa.binary())
        except pa.ArrowInvalid as error:
            raise Irregular("the messages are too large for one buffer") from error
        if isinstance(column, pa.ChunkedArray) or column.nbytes > _LARGEST_BUFFER:
            raise Irregular("the messages are too large for one buffer")
        _, offsets, self._data = column.buffers()
        ends = pa.Array.from_buffers(pa.int32(), len(column) + 1, [None, offsets]).cast(pa.int64())
        self.messages = Spans(ends[:-2], ends[1:-1])
        self._bytes = pa.Array.from_buffers(pa.uint8(), ends[-1].as_py(), [None, self._data])

    def bytes_at(self, places: pa.Array) -> pa.Array:
        return self._bytes.take(places).cast(pa.int64())

    def cut(self, *spans: Spans) -> list[pa.Array]:
        """What each of them has. No message's begins before those of the messages before it end, and in each message
        they come behind each other: so what is wanted is every second of all pieces that their bounds make."""
        rows, count = len(spans[0].start), len(spans)
        if not rows:
            return [pa.array([], pa.binary()) for _ in spans]
        bounds = pa.concat_arrays([bound for span in spans for bound in span])
        offsets = bounds.take(_woven(rows, 2 * count)).cast(pa.int32())
        pieces = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, offsets.buffers()[1], self._data])
        return [pieces.take(_every(rows, 2 * count, 2 * number)) for number in range(count)]


class InStep:
    """Reads the messages of a buffer that are at these places."""

    def __init__(self, buffer: Buffer, messages: Spans) -> None:
        self._buffer = buffer
        self._at, self._end = messages
        self._rows = len(self._at)

    def number(self, field: int) -> pa.Array:
        """The field's value in each message, 0 where it is absent."""
        return self._read_varint(self._take_key(field, _VARINT))

    def number_or_null(self, field: int) -> pa.Array:
        is_there = self._take_key(field, _VARINT)
        return pc.if_else(is_there, self._read_varint(is_there), pa.scalar(None, pa.int64()))

    def span(self, field: int) -> Spans:
        """Where its bytes are; none where it is absent."""
        return self._read_bytes(self._take_key(field, _BYTES))

    def one_of(self, fields: Sequence[int]) -> tuple[pa.Array, Spans]:
        """Which of these fields of bytes comes next, 0 where none does, and where its bytes are."""
        keys = pc.if_else(pc.less(self._at, self._end), self._buffer.bytes_at(self._at), 0)
        is_there = pc.is_in(keys, value_set=pa.array([_key(field, _BYTES) for field in fields], pa.int64()))
        self._at = pc.add(self._at, is_there.cast(pa.int64()))
        found = pc.if_else(is_there, pc.shift_right(keys, 3), 0)
        return found, self._read_bytes(is_there)

    def check_end(self) -> None:
        if not self._at.equals(self._end):
            raise Irregular("a message has fields that are not known, or in another order")

    def _take_key(self, field: int, wire_type: int) -> pa.Array:
        """Whether the field comes next: if so, what is read next is behind its key."""
        key = _key(field, wire_type)
        is_there = pc.and_(pc.less(self._at, self._end), pc.equal(self._buffer.bytes_at(self._at), key))
        self._at = pc.add(self._at, is_there.cast(pa.int64()))
        return is_there

    def _read_bytes(self, is_there: pa.Array) -> Spans:
        length = self._read_varint(is_there)
        start, self._at = self._at, pc.add(self._at, length)
        self._check_within()
        return Spans(start, self._at)

    def _read_varint(self, is_there: pa.Array) -> pa.Array:
        """Seven bits in each byte, the lowest first; the eighth bit says that there are more."""
        value = pa.repeat(pa.scalar(0, pa.int64()), self._rows)
        goes_on, number = is_there, 0
        while goes_on.true_count:
            if number == _LONGEST_VARINT:
                raise Irregular("a number is longer than ours are")
            byte = self._buffer.bytes_at(self._at)
            if goes_on.true_count < self._rows:
                byte = pc.if_else(goes_on, byte, 0)
            self._at = pc.add(self._at, goes_on.cast(pa.int64()))
            goes_on = pc.greater(byte, 0x7F)
            bits = pc.bit_wise_and(byte, 0x7F) if goes_on.true_count else byte
            value = pc.add(value, pc.shift_left(bits, 7 * number)) if number else bits
            number += 1
            self._check_within()
        return value

    def _check_within(self) -> None:
        """Nobody may go on in the next message: places are read that there are, and what is cut short is found out."""
        if self._rows and pc.max(pc.subtract(self._at, self._end)).as_py() > 0:
            raise Irregular("a message is cut short")


def _key(field: int, wire_type: int) -> int:
    if field > _LARGEST_FIELD:
        raise ValueError(f"field {field} has a key of more than one byte")
    return field << 3 | wire_type


def _every(rows: int, step: int, first: int) -> pa.Array:
    return pc.add(pc.multiply(numbers(rows), step), first)


def _woven(rows: int, columns: int) -> pa.Array:
    """Of columns behind each other: the first of each, the second of each, ..."""
    row = pc.divide(every := numbers(rows * columns), columns)
    column = pc.subtract(every, pc.multiply(row, columns))
    return pc.add(pc.multiply(column, rows), row)
