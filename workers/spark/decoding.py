"""Raw events become a table for each kind, a whole batch of them at a time. Bytes that no table could hold are counted
and left out, whatever they are: one bad event must not hold up the others.

All is done by columns, in C: a batch is looked at event by event only where one of its events is not as our runtime
writes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from queuecore.metrics import EVENT_VERSION
from queuecore.proto.events_pb2 import Event
from workers.spark.checks import problems, too_long
from workers.spark.heads import Heads
from workers.spark.ids import spelt
from workers.spark.numbers import numbers
from workers.spark.schemas import Kind
from workers.spark.wire import LONGEST_LIST, Irregular

# A sample from the future would be the newest until that day comes; clocks may differ by this much.
CLOCK_TOLERANCE: Final = timedelta(minutes=5)

# Far beyond what a timestamp can hold is as wrong as a little less.
_LIMIT_MS: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Period:
    """The times that events may be of, in milliseconds."""

    oldest_ms: int
    newest_ms: int


@dataclass(slots=True)
class Decoded:
    """Tables by the names of their kinds, and why some events are in none: how many, and the first one's index."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    unusable: dict[str, int] = field(default_factory=dict)
    examples: dict[str, int] = field(default_factory=dict)

    def refuse(self, reason: str, index: int, count: int = 1) -> None:
        self.unusable[reason] = self.unusable.get(reason, 0) + count
        self.examples.setdefault(reason, index)

    def add(self, other: "Decoded") -> None:
        """What was made of later events."""
        for kind, table in other.tables.items():
            both = [self.tables[kind], table] if kind in self.tables else [table]
            self.tables[kind] = pa.concat_tables(both).combine_chunks()
        for reason, count in other.unusable.items():
            self.refuse(reason, other.examples[reason], count)


def decode(data: pa.BinaryArray, period: Period) -> Decoded:
    """Everything that can be used. An event of a kind that this version does not know is another's: it is in no table,
    and nothing is wrong with it."""
    try:
        return _decode(data, numbers(len(data)), period)
    except Irregular:
        decoded = Decoded()
        regular = dict(_regular(data.to_pylist(), decoded))
        events = pa.array(list(regular.values()), pa.binary())
        decoded.add(_decode_or_refuse(events, pa.array(list(regular), pa.int64()), period))
        return decoded


def _regular(data: list[bytes], decoded: Decoded) -> Iterator[tuple[int, bytes]]:
    """Those that are events, as our runtime would write them, each with its index."""
    for index, one in enumerate(data):
        try:
            event = Event.FromString(one)
        except DecodeError:
            decoded.refuse("not a protobuf event", index)
        else:
            event.DiscardUnknownFields()
            if name := _long_list(event):
                decoded.refuse(too_long(name), index)
            else:
                yield index, event.SerializeToString()


def _long_list(event: Event) -> str:
    """How it is called; empty where there is none."""
    body = event.WhichOneof("body")
    fields = getattr(event, body).ListFields() if body else ()
    return next((field.name for field, value in fields if field.is_repeated and len(value) > LONGEST_LIST), "")


def _decode_or_refuse(data: pa.BinaryArray, places: pa.Array, period: Period) -> Decoded:
    """Nothing should be irregular that protobuf has written. What is all the same is found by halves: a task that fails
    of it would fail in every run."""
    try:
        return _decode(data, places, period)
    except Irregular as error:
        decoded = Decoded()
        if len(data) == 1:
            decoded.refuse(f"it cannot be read: {error}", places[0].as_py())
            return decoded
        half = len(data) // 2
        for some in (slice(half), slice(half, None)):
            decoded.add(_decode_or_refuse(data[some], places[some], period))
        return decoded


def _decode(data: pa.BinaryArray, places: pa.Array, period: Period) -> Decoded:
    """`places` has the index of each among all events."""
    if not len(data):
        return Decoded()
    heads = Heads(data)
    if pc.max(heads.versions).as_py() > EVENT_VERSION:
        is_newer = pc.greater(heads.versions, EVENT_VERSION)
        newer, older = places.filter(is_newer), pc.invert(is_newer)
        decoded = _decode(data.filter(older), places.filter(older), period)
        reason = f"its version is newer than {EVENT_VERSION}; update the Spark worker"
        decoded.refuse(reason, newer[0].as_py(), len(newer))
        return decoded
    decoded, at = Decoded(), _times(heads.at_ms)
    for kind, rows in heads.kinds():
        columns = [at.take(rows), heads.services.take(rows), *heads.bodies(kind)]
        named = zip(kind.arrow, columns, strict=True)
        table = pa.Table.from_arrays([_spelt(column, values) for column, values in named], schema=kind.arrow)
        decoded.tables[kind.name] = _usable(kind, table, period, places.take(rows), decoded)
    return decoded


def _times(at_ms: pa.Array) -> pa.Array:
    clipped = pc.max_element_wise(pc.min_element_wise(at_ms, _LIMIT_MS), -_LIMIT_MS)
    return pc.multiply(clipped, 1000).cast(pa.timestamp("us", tz="UTC"))


def _spelt(column: pa.Field, values: pa.Array) -> pa.Array:
    if not pa.types.is_list(column.type) or not pa.types.is_struct(column.type.value_type):
        return spelt(column.name, values)
    members = list(column.type.value_type)
    elements = [spelt(member.name, values.values.field(index)) for index, member in enumerate(members)]
    return pa.ListArray.from_arrays(
        values.offsets, pa.StructArray.from_arrays(elements, fields=members), type=column.type
    )


def _usable(kind: Kind, table: pa.Table, period: Period, places: pa.Array, decoded: Decoded) -> pa.Table:
    """The table without the rows that have a problem; each is counted once, by the first that is found."""
    kept: pa.Array | None = None
    for reason, bad in _all_problems(kind, table, period):
        if kept is not None:
            bad = pc.and_(bad, kept)
        if count := pc.sum(bad).as_py():
            decoded.refuse(reason, places[pc.index(bad, True).as_py()].as_py(), count)
            kept = pc.invert(bad) if kept is None else pc.and_not(kept, bad)
    return table if kept is None else table.filter(kept)


def _all_problems(kind: Kind, table: pa.Table, period: Period) -> Iterator[tuple[str, pa.Array]]:
    at = table["at"].combine_chunks().cast(pa.int64())
    oldest, newest = max(1, period.oldest_ms) * 1000, period.newest_ms * 1000
    span = pc.min_max(at)
    if span["min"].as_py() < oldest:
        yield "its time is unset, or further back than events are kept", pc.less(at, oldest)
    if span["max"].as_py() > newest:
        yield "its time is in the future", pc.greater(at, newest)
    yield from problems(kind, table)
