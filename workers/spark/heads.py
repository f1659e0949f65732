"""Events opened: what stands before their bodies, and the bodies as columns. In step where events are as a serialiser
writes them, which takes a sixth of the time; else by parsing them as one message."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from queuecore.proto.events_pb2 import Event
from workers.spark.columns import Irregular, Parser, Table, as_kind, type_of
from workers.spark.schemas import KINDS, OFFSET_SAMPLES, Kind
from workers.spark.wire import Buffer, InStep, Spans

_EVENT: Final = cast(Descriptor, Event.DESCRIPTOR)
_parser = Parser(_EVENT, ("version", "at_ms", "service_id", *(kind.body for kind in KINDS)))
_tables = {
    kind.name: Table(type_of(_EVENT, kind.body), [kind.arrow.field(name) for name in kind.fields]) for kind in KINDS
}
_FIELDS: Final = {_EVENT.fields_by_name[kind.body].number: kind for kind in KINDS}


class Heads(Protocol):
    """Of many events, one value for each."""

    versions: pa.Array
    at_ms: pa.Array
    services: pa.Array

    def kinds(self) -> Iterator[tuple[Kind, pa.Array]]:
        """Those that are among the events, with the numbers of the events that are of it."""

    def bodies(self, kind: Kind) -> list[pa.Array]:
        """Columns of its fields."""


def open_events(data: Sequence[bytes]) -> Heads:
    """DecodeError where one of them is none, Irregular where one is not as our runtime writes it: now, or when `bodies`
    are asked for."""
    try:
        return _InStep(data)
    except Irregular:
        return _Merged(data)


class _InStep:
    def __init__(self, data: Sequence[bytes]) -> None:
        self._buffer = Buffer(data)
        events = InStep(self._buffer, self._buffer.messages)
        self.versions = events.number(Event.VERSION_FIELD_NUMBER)
        self.at_ms = events.number(Event.AT_MS_FIELD_NUMBER)
        services = events.span(Event.SERVICE_ID_FIELD_NUMBER)
        fields, self._spans = events.one_of(list(_FIELDS))
        events.check_end()
        self.services = as_kind(pa.string(), self._buffer.cut(services)[0])
        self._rows = {
            _FIELDS[number].name: pc.indices_nonzero(pc.equal(fields, number))
            for number in pc.unique(fields).to_pylist()
            if number
        }

    def kinds(self) -> Iterator[tuple[Kind, pa.Array]]:
        for kind in KINDS:
            if kind.name in self._rows:
                yield kind, self._rows[kind.name]

    def bodies(self, kind: Kind) -> list[pa.Array]:
        rows = self._rows[kind.name]
        spans = Spans(self._spans.start.take(rows), self._spans.end.take(rows))
        if kind is OFFSET_SAMPLES:
            try:
                return _in_step(self._buffer, spans, kind)
            except Irregular:
                pass  # parsed as the others are
        return _tables[kind.name].parse(self._buffer.cut(spans)[0].to_pylist())


def _in_step(buffer: Buffer, spans: Spans, kind: Kind) -> list[pa.Array]:
    """For a kind that has numbers and texts alone."""
    messages, descriptor = InStep(buffer, spans), type_of(_EVENT, kind.body)
    columns: dict[str, pa.Array] = {}
    texts: dict[str, Spans] = {}
    for field in sorted(map(descriptor.fields_by_name.__getitem__, kind.fields), key=lambda one: one.number):
        if field.type == FieldDescriptor.TYPE_STRING:
            texts[field.name] = messages.span(field.number)
        else:
            read = messages.number_or_null if field.has_presence else messages.number
            columns[field.name] = read(field.number)
    messages.check_end()
    columns |= dict(zip(texts, buffer.cut(*texts.values()), strict=True))
    return [as_kind(kind.arrow.field(name).type, columns[name]) for name in kind.fields]


class _Merged:
    def __init__(self, data: Sequence[bytes]) -> None:
        self._heads = _parser.parse(data)
        self._count = len(data)
        self.versions = self._heads["version"].single(0)
        self.at_ms = self._heads["at_ms"].single(0)
        self.services = as_kind(pa.string(), self._heads["service_id"].single(b""))

    def kinds(self) -> Iterator[tuple[Kind, pa.Array]]:
        """Irregular where an event is of two: the last would hold."""
        found = {kind: self._heads[kind.body].lengths() for kind in KINDS if not self._heads[kind.body].are_none}
        bodies = pa.repeat(pa.scalar(0, pa.int64()), self._count)
        for lengths in found.values():
            bodies = pc.add(bodies, lengths)
        if pc.max(bodies).as_py() > 1:
            raise Irregular("an event has two bodies")
        for kind, lengths in found.items():
            yield kind, pc.indices_nonzero(lengths)

    def bodies(self, kind: Kind) -> list[pa.Array]:
        return _tables[kind.name].parse(self._heads[kind.body].all_as_list())
