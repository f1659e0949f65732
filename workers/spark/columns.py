"""Many protobuf messages of one type, parsed at once into a column for each field, without an object for each message.

Serialised messages that are put together are one message, in which a field that may be repeated has the values of all
of them. So the messages are parsed as one, by a description in which every field is repeated. A column that has as many
values as there are messages has one of each. For one that has fewer, a mark is put behind each message: one more value
of that field, which was drawn at random when the process began and which nobody can guess, so that it is known where
each message ends. A column that has another number of marks than there are messages was not made of such messages.

What could be misread is a column without marks where one message lacks a field that all others have, and another one
has it twice: two events that no serialiser writes, by somebody who may write to the topic of all events.
"""

import random
from collections.abc import Sequence
from itertools import compress
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from workers.spark.numbers import numbers

_INT: Final = FieldDescriptorProto.TYPE_INT64
_DOUBLE: Final = FieldDescriptorProto.TYPE_DOUBLE
_BYTES: Final = FieldDescriptorProto.TYPE_BYTES
# Whatever is a number without a point is parsed as the widest, texts as their bytes, which Arrow looks at all at once.
_PARSED_AS: Final[dict[int, int]] = {
    FieldDescriptor.TYPE_BOOL: _INT,
    FieldDescriptor.TYPE_INT32: _INT,
    FieldDescriptor.TYPE_INT64: _INT,
    FieldDescriptor.TYPE_UINT32: _INT,
    FieldDescriptor.TYPE_DOUBLE: _DOUBLE,
    FieldDescriptor.TYPE_STRING: _BYTES,
    FieldDescriptor.TYPE_BYTES: _BYTES,
    FieldDescriptor.TYPE_MESSAGE: _BYTES,
}
_ARROW: Final[dict[int, pa.DataType]] = {_INT: pa.int64(), _DOUBLE: pa.float64(), _BYTES: pa.binary()}
_ABSENT: Final[dict[int, Any]] = {_INT: 0, _DOUBLE: 0.0, _BYTES: b""}
_drawn = random.SystemRandom()
_MARKS: Final[dict[int, Any]] = {
    _INT: _drawn.getrandbits(62) | 1 << 61,
    _DOUBLE: -1e300 * (1 + _drawn.random()),
    _BYTES: b"\0" + _drawn.randbytes(6),
}


class Irregular(ValueError):
    """A message is not as our runtime writes it: a field is there twice, or is not of its type. It may be valid all the
    same; parsed alone and serialised again it is regular."""


class Values:
    """What all messages have in one field, as it was parsed: with a mark behind each message, or one value of each, or
    none at all."""

    def __init__(self, values: list[Any], parsed_as: int, rows: int, *, is_marked: bool) -> None:
        self.rows = rows
        self._parsed = values
        self._kind = _ARROW[parsed_as]
        self._is_value: pa.Array | None = None
        self._unmarked: pa.Array | None = None
        self._ends: pa.Array | None = None
        if is_marked:
            column = pa.array(values, self._kind)
            is_mark = pc.equal(column, pa.scalar(_MARKS[parsed_as], self._kind))
            self._ends = pc.indices_nonzero(is_mark).cast(pa.int64())
            if len(self._ends) != rows:
                raise Irregular("the messages cannot be told apart")
            self._is_value = pc.invert(is_mark)
            self._unmarked = column.filter(self._is_value)

    @property
    def are_none(self) -> bool:
        return not self._count

    @property
    def _count(self) -> int:
        """How many values there are, without the marks."""
        return len(self._parsed) if self._ends is None else len(self._parsed) - self.rows

    def offsets(self) -> pa.Array:
        """Where the values of each message begin among all, and where the last one's end."""
        if self._ends is None:
            return pc.multiply(numbers(self.rows + 1), 0 if self.are_none else 1)
        return pa.concat_arrays([pa.array([0], pa.int64()), pc.subtract(self._ends, numbers(self.rows))])

    def lengths(self) -> pa.Array:
        """How many values each message has."""
        offsets = self.offsets()
        return pc.subtract(offsets[1:], offsets[:-1])

    def all(self) -> pa.Array:
        return pa.array(self._parsed, self._kind) if self._unmarked is None else self._unmarked

    def all_as_list(self) -> list[Any]:
        return self._parsed if self._is_value is None else list(compress(self._parsed, self._is_value.to_pylist()))

    def single(self, absent: Any) -> pa.Array:
        """One value for each message."""
        if self.are_none:
            return pa.repeat(pa.scalar(absent, self._kind), self.rows)
        if self._ends is None:
            return self.all()
        offsets, lengths = self.offsets(), self.lengths()
        if pc.max(lengths).as_py() > 1:
            raise Irregular("a field is there twice")
        found = self.all().take(pc.min_element_wise(offsets[:-1], self._count - 1))
        return pc.if_else(pc.equal(lengths, 0), pa.scalar(absent, self._kind), found)


class Parser:
    """For some fields of one type of message. It learns which of them messages may lack."""

    def __init__(self, message: Descriptor, names: Sequence[str]) -> None:
        fields = {name: message.fields_by_name[name] for name in names}
        self._fields = {name: _PARSED_AS[field.type] for name, field in fields.items()}
        self._repeated = {name for name, field in fields.items() if field.is_repeated}
        self._view = _view(message, self._fields)
        # One has marks in any case: by it a message is found out that is cut short, and goes on in the next one.
        self._set_marks({names[0]})

    def _set_marks(self, names: set[str]) -> None:
        self._marked = names
        marks = {name: [_MARKS[self._fields[name]]] for name in names}
        self._mark: bytes = self._view(**marks).SerializeToString()

    def parse(self, messages: Sequence[bytes]) -> dict[str, Values]:
        """By field. DecodeError where there is a message among them that is none; Irregular where they cannot be told
        apart."""
        rows = len(messages)
        while True:
            merged = self._view.FromString(self._mark.join((*messages, b"")))
            lists: dict[str, list[Any]] = {name: getattr(merged, name)[:] for name in self._fields}
            unclear = {name for name, values in lists.items() if self._is_unclear(name, len(values), rows)}
            if not unclear:
                break
            self._set_marks(self._marked | unclear)
        return {
            name: Values(lists[name], parsed_as, rows, is_marked=name in self._marked)
            for name, parsed_as in self._fields.items()
        }

    def _is_unclear(self, name: str, values: int, rows: int) -> bool:
        """Whether it is not known whose value each of a field's is."""
        return name not in self._marked and values != 0 and (name in self._repeated or values != rows)


def _view(message: Descriptor, fields: dict[str, int]) -> Any:
    """The type of message that has all its fields repeated. Messages within are bytes, to be parsed in their turn."""
    file = FileDescriptorProto(name="view.proto", package="view", syntax="proto3")
    view = file.message_type.add(name=message.name)
    for name, parsed_as in fields.items():
        number = message.fields_by_name[name].number
        field = view.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_REPEATED)
        field.type = cast(Any, parsed_as)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"view.{message.name}"))


def type_of(message: Descriptor, name: str) -> Descriptor:
    """Of the messages that this field holds."""
    if (found := message.fields_by_name[name].message_type) is None:
        raise TypeError(f"{name} of {message.full_name} holds no message")
    return found


class Table:
    """Parses messages of one type into columns of these Arrow fields, which have the names of the message's."""

    def __init__(self, message: Descriptor, columns: Sequence[pa.Field]) -> None:
        self._columns = columns
        self._parser = Parser(message, [column.name for column in columns])
        self._absent = {column.name: _absent(message.fields_by_name[column.name]) for column in columns}
        self._within = {
            column.name: Table(type_of(message, column.name), list(column.type.value_type))
            for column in columns
            if pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type)
        }

    def parse(self, messages: Sequence[bytes]) -> list[pa.Array]:
        """As `Parser.parse`; an absent field is null where the message tells that from its default."""
        values = self._parser.parse(messages)
        return [self._column(column, values[column.name]) for column in self._columns]

    def _column(self, column: pa.Field, values: Values) -> pa.Array:
        if not pa.types.is_list(column.type):
            return as_kind(column.type, values.single(self._absent[column.name]))
        offsets = values.offsets().cast(pa.int32())
        return pa.ListArray.from_arrays(offsets, self._elements(column, values), type=column.type)

    def _elements(self, column: pa.Field, values: Values) -> pa.Array:
        if (within := self._within.get(column.name)) is None:
            return as_kind(column.type.value_type, values.all())
        members = list(column.type.value_type)
        if values.are_none:
            return pa.array([], column.type.value_type)
        return pa.StructArray.from_arrays(within.parse(values.all_as_list()), fields=members)


def _absent(field: FieldDescriptor) -> Any:
    """What stands for a field that a message has not."""
    return None if field.has_presence or field.is_repeated else _ABSENT[_PARSED_AS[field.type]]


def as_kind(kind: pa.DataType, values: pa.Array) -> pa.Array:
    """The values as what they are."""
    if values.type == kind:
        return values
    if pa.types.is_boolean(kind):
        return pc.not_equal(values, 0)
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        raise Irregular("a number is larger than its type, or a text is none") from error
