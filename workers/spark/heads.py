"""Events opened: what stands before their bodies, and the bodies as columns."""

from collections.abc import Iterator
from typing import Final, cast

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from queuecore.proto.events_pb2 import Event
from workers.spark.columns import Columns, type_of
from workers.spark.schemas import KINDS, Kind
from workers.spark.wire import LARGEST_BUFFER, PLACE, Buffer, InStep, Irregular, Spans

_EVENT: Final = cast(Descriptor, Event.DESCRIPTOR)
_FIELDS: Final = {_EVENT.fields_by_name[kind.body].number: kind for kind in KINDS}
_COLUMNS: Final = {
    kind.name: Columns(type_of(_EVENT.fields_by_name[kind.body]), [kind.arrow.field(name) for name in kind.fields])
    for kind in KINDS
}
# Longer than anything before the name of a service, with the length of that: three keys of a byte each, a time of ten,
# as one that is negative has, and two numbers of five.
_FIRST_BYTES: Final = 24
_VERSION, _AT, _SERVICE = (
    number << 3 | wire_type
    for number, wire_type in (
        (Event.VERSION_FIELD_NUMBER, 0),
        (Event.AT_MS_FIELD_NUMBER, 0),
        (Event.SERVICE_ID_FIELD_NUMBER, 2),
    )
)


class Heads:
    """Of many events, one value for each. What stands before the bodies is the same of all that a service reports at
    one time: protobuf parses each such head once."""

    def __init__(self, events: pa.BinaryArray) -> None:
        """Irregular where one is not as our runtime writes it: now, or when `bodies` are asked for."""
        self._buffer = Buffer(events)
        start, end = self._buffer.messages
        bodies = pc.add(start, _head_lengths(events))
        if len(events) and not pc.all(pc.less_equal(bodies, end)).as_py():
            raise Irregular("an event is cut short")
        heads = self._buffer.cut(Spans(start, bodies))[0].dictionary_encode()
        parsed = list(map(_parse, heads.dictionary.to_pylist()))
        self.versions = pa.array([head.version for head in parsed], pa.int64()).take(heads.indices)
        self.at_ms = pa.array([head.at_ms for head in parsed], pa.int64()).take(heads.indices)
        services = pa.array([head.service_id for head in parsed], pa.string()).dictionary_encode()
        self.services = pa.DictionaryArray.from_arrays(services.indices.take(heads.indices), services.dictionary)
        steps = InStep(self._buffer, Spans(bodies, end))
        fields, self._spans = steps.one_of(list(_FIELDS))
        steps.check_end()
        self._rows = {
            _FIELDS[number].name: pc.indices_nonzero(pc.equal(fields, number))
            for number in pc.unique(fields).to_pylist()
            if number
        }

    def kinds(self) -> Iterator[tuple[Kind, pa.Array]]:
        """Those that are among the events, with the numbers of the events that are of it."""
        for kind in KINDS:
            if kind.name in self._rows:
                yield kind, self._rows[kind.name]

    def bodies(self, kind: Kind) -> list[pa.Array]:
        """Columns of its fields."""
        return _COLUMNS[kind.name].read(self._buffer, self._spans.take(self._rows[kind.name]))


def _head_lengths(events: pa.BinaryArray) -> pa.Array:
    firsts = pc.binary_slice(events, 0, _FIRST_BYTES).dictionary_encode()
    return pa.array(list(map(_head_length, firsts.dictionary.to_pylist())), PLACE).take(firsts.indices)


def _head_length(first: bytes) -> int:
    """How many bytes the fields before the body have: two numbers and a text, each of which may be absent."""
    place = 0
    for key in (_VERSION, _AT, _SERVICE):
        if first[place : place + 1] == bytes((key,)):
            number, place = _varint(first, place + 1)
            if key == _SERVICE:
                place += number
    return place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """The number at this place, or the largest that makes sense, and the place behind it."""
    value = 0
    for number, byte in enumerate(data[place:]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return min(value, LARGEST_BUFFER), place + number + 1
    raise Irregular("an event is cut short")


def _parse(head: bytes) -> Event:
    try:
        return Event.FromString(head)
    except DecodeError as error:
        raise Irregular("a head is none") from error
