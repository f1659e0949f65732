"""Protobuf's wire format, read by many messages in step: each stands at its own place in one buffer, and all take the
next field at the same time. So a field costs a few of Arrow's kernels, and there is no Python object for a value.

That works for messages as serialisers write them: fields in the order of their numbers, each once, numbers of a list in
one piece, and no field that is not asked for. All else is Irregular: what protobuf parses and writes again is as it
should be.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workers.spark.numbers import numbers

_VARINT, _FIXED, _BYTES = 0, 1, 2
_NO_BITS, _SEVEN_BITS = pa.scalar(0, pa.uint8()), pa.scalar(0x7F, pa.uint8())
_FIXED_BYTES: Final = 8
# Negative numbers have ten bytes, of which the last has the sign.
_LONGEST_VARINT: Final = 10
_WORTH: Final = [pa.scalar(worth, pa.int64()) for worth in (*(1 << 7 * number for number in range(9)), -(1 << 63))]
# Zeros behind the last message: who has read all of a message looks at what comes next.
_BEHIND: Final = b"\0" * 16
# No place in a buffer is larger, and none can be added to another that the sum would be.
LARGEST_BUFFER: Final = (1 << 30) - 1
PLACE: Final = pa.int32()
# Some times what our runtime writes. Each element of a list takes a round.
LONGEST_LIST: Final = 2_000


class Irregular(ValueError):
    """A message is not as our runtime writes it: a field is there twice, or is not of its type. It may be valid all the
    same; parsed alone and serialised again it is regular."""


class Spans(NamedTuple):
    """Parts of the buffer, one for each message: from where, and up to where."""

    start: pa.Array
    end: pa.Array

    def take(self, rows: pa.Array) -> "Spans":
        return Spans(self.start.take(rows), self.end.take(rows))


class Lists(NamedTuple):
    """A list for each message: where each begins among the values of all, and where the last ends."""

    offsets: pa.Array
    values: pa.Array


class Buffer:
    """Messages behind each other."""

    def __init__(self, messages: pa.BinaryArray) -> None:
        column = pa.concat_arrays([messages, pa.array([_BEHIND], pa.binary())])
        _, offsets, self._data = column.buffers()
        ends = pa.Array.from_buffers(PLACE, len(column) + 1, [None, offsets])
        self.messages = Spans(ends[:-2], ends[1:-1])
        self._bytes = pa.Array.from_buffers(pa.uint8(), ends[-1].as_py(), [None, self._data])

    def bytes_at(self, places: pa.Array) -> pa.Array:
        return self._bytes.take(places)

    def cut(self, *spans: Spans) -> list[pa.Array]:
        """What each of them has. No message's begins before those of the messages before it end, and in each message
        they come behind each other: so what is wanted is every second of all pieces that their bounds make."""
        rows, count = len(spans[0].start), len(spans)
        if not rows:
            return [pa.array([], pa.binary()) for _ in spans]
        bounds = pa.concat_arrays([bound for span in spans for bound in span])
        offsets = bounds.take(_woven(rows, 2 * count))
        pieces = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, offsets.buffers()[1], self._data])
        return [pieces.take(_every(rows, 2 * count, 2 * number)) for number in range(count)]


class InStep:
    """Reads the messages of a buffer that are at these places."""

    def __init__(self, buffer: Buffer, messages: Spans) -> None:
        self._buffer = buffer
        self._at, self._end = messages
        self._rows = len(self._at)

    @property
    def at(self) -> pa.Array:
        """Where each stands."""
        return self._at

    def number(self, field: int) -> pa.Array:
        """The field's value in each message, 0 where it is absent."""
        return self._read_varint(self._take_key(field, _VARINT))

    def number_or_null(self, field: int) -> pa.Array:
        is_there = self._take_key(field, _VARINT)
        return pc.if_else(is_there, self._read_varint(is_there), pa.scalar(None, pa.int64()))

    def skip_number(self, field: int) -> None:
        goes_on, number = self._take_key(field, _VARINT), 0
        while goes_on.true_count:
            goes_on, number = pc.and_(goes_on, pc.greater(self._next_byte(goes_on, number), _SEVEN_BITS)), number + 1
        self._check_within()

    def float(self, field: int) -> pa.Array:
        """0.0 where it is absent."""
        is_there = self._take_key(field, _FIXED)
        start = self._at
        self._go_on(is_there, _FIXED_BYTES)
        self._check_within()
        values = _floats(self._buffer.cut(Spans(start.filter(is_there), self._at.filter(is_there)))[0])
        return pc.replace_with_mask(pa.repeat(pa.scalar(0.0), self._rows), is_there, values)

    def span(self, field: int) -> Spans:
        """Where its bytes are; none where it is absent."""
        return self._read_bytes(self._take_key(field, _BYTES))

    def numbers(self, field: int) -> Lists:
        [lists] = self._buffer.cut(self.span(field))
        return _varints(lists)

    def floats(self, field: int) -> Lists:
        [lists] = self._buffer.cut(self.span(field))
        ends = _ends(lists)
        offsets = pc.divide(ends, _FIXED_BYTES)
        if not pc.multiply(offsets, _FIXED_BYTES).equals(ends):
            raise Irregular("a list of numbers is cut short")
        return Lists(offsets, _floats(lists))

    def messages(self, field: int) -> tuple[pa.Array, Spans]:
        """Where each message's list begins among all messages within, and where these are."""
        step, rows, found = self, numbers(self._rows), list[tuple[pa.Array, Spans]]()
        while (is_there := step._take_key(field, _BYTES)).true_count:
            if len(found) == LONGEST_LIST:
                raise Irregular("a list is longer than any is")
            step, rows = step._only(is_there), rows.filter(is_there)
            found.append((rows, step._read_bytes(pa.repeat(True, len(rows)))))  # noqa: SLF001
        if not found:
            return pc.multiply(numbers(self._rows + 1), 0), self._only(pa.repeat(False, self._rows)).everything
        all_rows = pa.concat_arrays([rows for rows, _ in found])
        # Who has the second of its list stands behind who has the first: in order of rows, and then of rounds.
        keys = [pc.add(pc.multiply(rows, len(found)), number) for number, (rows, _) in enumerate(found)]
        order = pc.sort_indices(pa.concat_arrays(keys))
        start, end = (pa.concat_arrays([span[bound] for _, span in found]).take(order) for bound in (0, 1))
        offsets = pc.search_sorted(all_rows.take(order), numbers(self._rows + 1), side="left").cast(pa.int64())
        has_some = pc.greater(offsets[1:], offsets[:-1])
        last = end.take(pc.max_element_wise(pc.subtract(offsets[1:], 1), 0))
        self._at = pc.if_else(has_some, last, self._at)
        return offsets, Spans(start, end)

    def one_of(self, fields: Sequence[int]) -> tuple[pa.Array, Spans]:
        """Which of these fields of bytes comes next, 0 where none does, and where its bytes are."""
        keys = pc.if_else(pc.less(self._at, self._end), self._buffer.bytes_at(self._at), _NO_BITS)
        is_there = pc.is_in(keys, value_set=pa.array([_short_key(field) for field in fields], pa.uint8()))
        self._go_on(is_there)
        found = pc.if_else(is_there, pc.shift_right(keys, 3), _NO_BITS)
        return found, self._read_bytes(is_there)

    @property
    def everything(self) -> Spans:
        """What is left of each."""
        return Spans(self._at, self._end)

    def check_end(self) -> None:
        if not self._at.equals(self._end):
            raise Irregular("a message has fields that are not known, or in another order")

    def _only(self, wanted: pa.Array) -> "InStep":
        return InStep(self._buffer, Spans(self._at.filter(wanted), self._end.filter(wanted)))

    def _take_key(self, field: int, wire_type: int) -> pa.Array:
        """Whether the field comes next: if so, what is read next is behind its key."""
        key = _key(field, wire_type)
        is_there = pc.less(self._at, self._end)
        for number, byte in enumerate(key):
            place = pc.add(self._at, pa.scalar(number, PLACE)) if number else self._at
            is_there = pc.and_(is_there, pc.equal(self._buffer.bytes_at(place), pa.scalar(byte, pa.uint8())))
        if is_there.true_count:
            self._go_on(is_there, len(key))
        return is_there

    def _read_bytes(self, is_there: pa.Array) -> Spans:
        length = self._read_varint(is_there)
        extremes = pc.min_max(length)
        if self._rows and (extremes["min"].as_py() < 0 or extremes["max"].as_py() > LARGEST_BUFFER):
            raise Irregular("a message is cut short")
        start, self._at = self._at, pc.add(self._at, length.cast(PLACE))
        self._check_within()
        return Spans(start, self._at)

    def _read_varint(self, is_there: pa.Array) -> pa.Array:
        """Seven bits in each byte, the lowest first; the eighth bit says that there are more."""
        value, goes_on, number = None, is_there, 0
        while goes_on.true_count:
            byte = self._next_byte(goes_on, number)
            goes_on = pc.greater(byte, _SEVEN_BITS)
            value, number = _with_bits(value, byte, number), number + 1
        self._check_within()
        return pa.repeat(pa.scalar(0, pa.int64()), self._rows) if value is None else value

    def _next_byte(self, wanted: pa.Array, number: int) -> pa.Array:
        """Of those that want one; 0 of the others. It is the one with that number of a number's."""
        if number == _LONGEST_VARINT:
            raise Irregular("a number is longer than any is")
        byte = self._buffer.bytes_at(self._at)
        self._go_on(wanted)
        return byte if wanted.true_count == self._rows else pc.if_else(wanted, byte, _NO_BITS)

    def _go_on(self, wanted: pa.Array, by: int = 1) -> None:
        if wanted.true_count == self._rows:
            self._at = pc.add(self._at, pa.scalar(by, PLACE))
        else:
            self._at = pc.if_else(wanted, pc.add(self._at, pa.scalar(by, PLACE)), self._at)

    def _check_within(self) -> None:
        """Nobody may go on in the next message: what is cut short is found out before its value is used."""
        if self._rows and not pc.all(pc.less_equal(self._at, self._end)).as_py():
            raise Irregular("a message is cut short")


def _varints(lists: pa.BinaryArray) -> Lists:
    """Numbers behind each other: each ends with the byte that says that there are no more."""
    raw = _content(lists, pa.uint8(), 1)
    is_last = pc.less(raw, pa.scalar(0x80, pa.uint8()))
    behind = pc.add(pc.indices_nonzero(is_last).cast(pa.int64()), 1)
    offsets = pc.search_sorted(behind, _ends(lists), side="right").cast(pa.int64())
    if not pa.concat_arrays([numbers(1), behind]).take(offsets).equals(_ends(lists)):
        raise Irregular("a list of numbers is cut short")
    first = pa.concat_arrays([numbers(1), behind])[:-1]
    if not len(first):
        return Lists(offsets, first)
    lengths = pc.subtract(behind, first)
    longest = pc.max(lengths).as_py()
    if longest > _LONGEST_VARINT:
        raise Irregular("a number is longer than any is")
    value = _with_bits(None, raw.take(first), 0)
    for number in range(1, longest):
        place = pc.min_element_wise(pc.add(first, number), len(raw) - 1)
        value = _with_bits(value, pc.if_else(pc.greater(lengths, number), raw.take(place), 0), number)
    return Lists(offsets, value)


def _with_bits(value: pa.Array | None, byte: pa.Array, number: int) -> pa.Array:
    """The value with the bits of its byte of that number."""
    bits = pc.bit_wise_and(byte, _SEVEN_BITS).cast(pa.int64())
    return bits if value is None else pc.add(value, pc.multiply(bits, _WORTH[number]))


def _floats(pieces: pa.BinaryArray) -> pa.Array:
    return _content(pieces, pa.float64(), _FIXED_BYTES)


def _content(pieces: pa.BinaryArray, kind: pa.DataType, width: int) -> pa.Array:
    """All bytes of an array that was cut out, as what they are."""
    size = _ends(pieces)[-1].as_py()
    return pa.Array.from_buffers(kind, size // width, [None, pieces.buffers()[2] or pa.py_buffer(b"")])


def _ends(pieces: pa.BinaryArray) -> pa.Array:
    """Where each begins among the bytes of all, and where the last ends."""
    if not len(pieces):
        return numbers(1)
    return pa.Array.from_buffers(pa.int32(), len(pieces) + 1, [None, pieces.buffers()[1]]).cast(pa.int64())


def _key(field: int, wire_type: int) -> bytes:
    key = field << 3 | wire_type
    return bytes((key,)) if key < 0x80 else bytes((key & 0x7F | 0x80, key >> 7))


def _short_key(field: int) -> int:
    [key] = _key(field, _BYTES)
    return key


def _every(rows: int, step: int, first: int) -> pa.Array:
    return pc.add(pc.multiply(numbers(rows), step), first)


def _woven(rows: int, columns: int) -> pa.Array:
    """Of columns behind each other: the first of each, the second of each, ..."""
    row = pc.divide(every := numbers(rows * columns), columns)
    column = pc.subtract(every, pc.multiply(row, columns))
    return pc.add(pc.multiply(column, rows), row)
