"""Many messages of one type as columns, one for each field that is wanted."""

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from workers.spark.schemas import as_text
from workers.spark.wire import Buffer, InStep, Irregular, Spans

_FLOAT: Final = FieldDescriptor.TYPE_DOUBLE
_TEXTS: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)

Read = Callable[[InStep, Buffer], pa.Array]


class Columns:
    """Reads messages into columns of these Arrow fields, which have the names of the message's. All fields of the
    message have to be among them: what is not asked for is Irregular."""

    def __init__(self, message: Descriptor, wanted: Sequence[pa.Field]) -> None:
        self._kinds = {field.name: field.type for field in wanted}
        known = (message.fields_by_name[field.name] for field in wanted)
        fields = sorted(known, key=lambda field: field.number)
        repeated = {field.name for field in wanted if pa.types.is_dictionary(field.type)}
        names = max((index + 1 for index, field in enumerate(fields) if field.name in repeated), default=0)
        self._names = _Names(message, [as_text(self._field(field)) for field in fields[:names]]) if names else None
        self._fields = fields[names:]
        self._readers = {field.name: self._reader(field) for field in self._fields if not _is_text(field)}

    def _field(self, field: FieldDescriptor) -> pa.Field:
        return pa.field(field.name, self._kinds[field.name])

    def read(self, buffer: Buffer, messages: Spans) -> list[pa.Array]:
        """In the order of the Arrow fields. An absent field is null where the message tells that from its default.
        Irregular where a message is not as our runtime writes it."""
        steps = InStep(buffer, messages)
        columns = self._names.read(steps, buffer) if self._names else {}
        texts: dict[str, Spans] = {}
        for field in self._fields:
            if _is_text(field):
                texts[field.name] = steps.span(field.number)
            else:
                columns[field.name] = self._readers[field.name](steps, buffer)
        steps.check_end()
        if texts:
            columns |= dict(zip(texts, buffer.cut(*texts.values()), strict=True))
        return [_as_kind(kind, columns[name]) for name, kind in self._kinds.items()]

    def _reader(self, field: FieldDescriptor) -> Read:
        number, kind = field.number, self._kinds[field.name]
        if field.message_type is not None:
            return self._reader_of_messages(field)
        if field.is_repeated:
            return _reader_of_list(field, kind)
        if field.type == _FLOAT:
            return lambda steps, _: steps.float(number)
        if field.has_presence:
            return lambda steps, _: steps.number_or_null(number)
        return lambda steps, _: steps.number(number)

    def _reader_of_messages(self, field: FieldDescriptor) -> Read:
        number, kind = field.number, self._kinds[field.name]
        members = list(kind.value_type)
        within = Columns(type_of(field), members)

        def read(steps: InStep, buffer: Buffer) -> pa.Array:
            offsets, spans = steps.messages(number)
            values = pa.StructArray.from_arrays(within.read(buffer, spans), fields=members)
            return pa.ListArray.from_arrays(offsets.cast(pa.int32()), values, type=kind)

        return read


class _Names:
    """The first fields of messages, up to the last text, which are the same in many: each such beginning is read
    once."""

    def __init__(self, message: Descriptor, wanted: Sequence[pa.Field]) -> None:
        self._fields = [message.fields_by_name[field.name] for field in wanted]
        self._columns = Columns(message, wanted)

    def read(self, steps: InStep, buffer: Buffer) -> dict[str, pa.Array]:
        start = steps.at
        for field in self._fields:
            if _is_text(field):
                steps.span(field.number)
            else:
                steps.skip_number(field.number)
        found = buffer.cut(Spans(start, steps.at))[0].dictionary_encode()
        different = Buffer(found.dictionary)
        columns = self._columns.read(different, different.messages)
        named = zip(self._fields, columns, strict=True)
        return {field.name: _spread(column, found.indices) for field, column in named}


def _spread(values: pa.Array, indices: pa.Array) -> pa.Array:
    """Values that each stand for many; a text is there once."""
    if not pa.types.is_string(values.type):
        return values.take(indices)
    texts = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(texts.indices.take(indices), texts.dictionary)


def type_of(field: FieldDescriptor) -> Descriptor:
    """Of the messages that it holds."""
    if (found := field.message_type) is None:
        raise TypeError(f"{field.full_name} holds no message")
    return found


def _reader_of_list(field: FieldDescriptor, kind: pa.DataType) -> Read:
    number, is_float = field.number, field.type == _FLOAT

    def read(steps: InStep, _: Buffer) -> pa.Array:
        lists = steps.floats(number) if is_float else steps.numbers(number)
        return pa.ListArray.from_arrays(lists.offsets.cast(pa.int32()), lists.values, type=kind)

    return read


def _is_text(field: FieldDescriptor) -> bool:
    return field.type in _TEXTS


def _as_kind(kind: pa.DataType, values: pa.Array) -> pa.Array:
    """The values as what they are."""
    if values.type == kind:
        return values
    if pa.types.is_boolean(kind):
        return pc.not_equal(values, 0)
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        raise Irregular("a number is larger than its type, or a text is none") from error
