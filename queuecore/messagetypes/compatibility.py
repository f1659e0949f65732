"""Whether what was written by one version of a message type is read by another as it was meant."""

from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

from queuecore.messagetypes.forms import MessageForm

_TYPES: Final = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in vars(FieldDescriptor)
    if name.startswith("TYPE_")
}
# What is written as the first is read as the second without loss.
_WIDER: Final = {("int32", "int64"), ("uint32", "uint64"), ("sint32", "sint64")}

Pair = tuple[Descriptor, Descriptor]


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """`where` is a message, field or enum value by its whole name; `why` says what would be misread, and what to do."""

    where: str
    why: str


def find_incompatibilities(before: MessageForm, after: MessageForm) -> list[Incompatibility]:
    """All that keep messages of the one from being read as the other, in either form, binary or JSON. Empty: a change
    that both old and new readers can live with."""
    if before.name != after.name:
        return [Incompatibility(after.name, f"another message than {before.name}; make a type of its own for it")]
    return _Comparison().run(before.descriptor, after.descriptor)


class _Comparison:
    """Of two messages and all that they are made of, each pair once: messages may hold each other."""

    def __init__(self) -> None:
        self._found: list[Incompatibility] = []
        self._seen: set[tuple[str, str]] = set()
        self._waiting: list[Pair] = []

    def run(self, before: Descriptor, after: Descriptor) -> list[Incompatibility]:
        self._look_at(before, after)
        while self._waiting:
            self._compare(*self._waiting.pop())
        return sorted(self._found, key=lambda one: one.where)

    def _look_at(self, before: Descriptor, after: Descriptor) -> None:
        names = (before.full_name, after.full_name)
        if names not in self._seen:
            self._seen.add(names)
            self._waiting.append((before, after))

    def _say(self, where: str, why: str) -> None:
        self._found.append(Incompatibility(where, why))

    def _compare(self, before: Descriptor, after: Descriptor) -> None:
        old, new = before.fields_by_number, after.fields_by_number
        reserved_then, reserved_now = _reserved(before), _reserved(after)
        for number in sorted({*old, *new}):
            if number not in new:
                self._check_removed(old[number], reserved_now)
            elif number not in old:
                self._check_added(new[number], reserved_then)
            else:
                self._check_kept(old[number], new[number])

    def _check_removed(self, field: FieldDescriptor, reserved: DescriptorProto) -> None:
        ranges = reserved.reserved_range
        if not any(one.start <= field.number < one.end for one in ranges):
            self._say(field.full_name, f"field {field.number} is gone; write `reserved {field.number};` in its place")
        elif field.name not in reserved.reserved_name:
            self._say(field.full_name, f'its name could come back; write `reserved "{field.name}";` as well')
        if field.is_required:
            self._say(field.full_name, "it is required by those who have the version before; keep it")

    def _check_added(self, field: FieldDescriptor, reserved: DescriptorProto) -> None:
        if any(one.start <= field.number < one.end for one in reserved.reserved_range):
            self._say(field.full_name, f"number {field.number} is reserved: another field had it; take a new one")
        if field.name in reserved.reserved_name:
            self._say(field.full_name, f"the name {field.name!r} is reserved: another field had it; take a new one")
        if field.is_required:
            self._say(field.full_name, "it is required, and what was written before has none; make it optional")

    def _check_kept(self, old: FieldDescriptor, new: FieldDescriptor) -> None:
        where = new.full_name
        if old.name != new.name:
            self._say(where, f"field {new.number} was called {old.name!r}; keep that name, or take a new number")
        elif old.json_name != new.json_name:
            self._say(where, f"in JSON it was called {old.json_name!r}; keep that name")
        if old.is_repeated != new.is_repeated:
            self._say(where, f"it was {_times(old)} and is {_times(new)}; keep that, or take a new number")
        if old.is_required != new.is_required:
            self._say(where, "whether it is required may not change; keep that")
        if _choice(old) != _choice(new):
            self._say(where, f"it was in {_choice(old)} and is in {_choice(new)}; setting one would clear others")
        self._check_type(old, new)

    def _check_type(self, old: FieldDescriptor, new: FieldDescriptor) -> None:
        was, now = _TYPES[old.type], _TYPES[new.type]
        if was != now and (was, now) not in _WIDER:
            self._say(new.full_name, f"its type was {was} and is {now}; keep that, or take a new number")
        elif old.message_type is not None and new.message_type is not None:
            self._look_at(old.message_type, new.message_type)
        elif old.enum_type is not None and new.enum_type is not None:
            self._compare_enums(old.enum_type, new.enum_type)

    def _compare_enums(self, before: EnumDescriptor, after: EnumDescriptor) -> None:
        if (before.full_name, after.full_name) in self._seen:
            return
        self._seen.add((before.full_name, after.full_name))
        reserved = EnumDescriptorProto()
        after.CopyToProto(reserved)
        for number, value in before.values_by_number.items():
            where = f"{after.full_name}.{value.name}"
            if number in after.values_by_number:
                if value.name not in after.values_by_name:
                    self._say(where, f"value {number} was called {value.name!r}; keep that name")
            elif not any(one.start <= number <= one.end for one in reserved.reserved_range):
                self._say(where, f"value {number} is gone; write `reserved {number};` in its place")


def _reserved(message: Descriptor) -> DescriptorProto:
    told = DescriptorProto()
    message.CopyToProto(told)
    return told


def _times(field: FieldDescriptor) -> str:
    return "repeated" if field.is_repeated else "single"


def _choice(field: FieldDescriptor) -> str:
    """The `oneof` that it is one of. What proto3 makes of `optional` is none that anybody wrote."""
    one = field.containing_oneof
    is_synthetic = one is not None and len(one.fields) == 1 and one.name == f"_{field.name}"
    return "no oneof" if one is None or is_synthetic else f"oneof {one.name}"
