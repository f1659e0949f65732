"""A message type as its description says: payloads to JSON values, and back."""

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

# Imported for what they register: descriptions may use them without bringing them along.
from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message_factory,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError

from queuecore.errors import ConfigurationError, InvalidMessage, UndecodableMessage
from queuecore.messagetypes.limits import check_limits, check_size

# A payload of some bytes can describe values of far more: sixteen thousand empty messages are 32 KiB.
MAX_DECODED_BYTES: Final = 256 * 1024
_DEEPEST_JSON: Final = 100
# Of values that it never thought of, the library does not say that they are wrong: it stumbles over them.
_FAILURES: Final = (
    DecodeError, EncodeError, json_format.Error, ArithmeticError, AttributeError, LookupError, RecursionError,
    SystemError, TypeError, ValueError,
)  # fmt: skip

_WELL_KNOWN: Final = {
    module.DESCRIPTOR.name: module.DESCRIPTOR
    for module in (
        any_pb2, source_context_pb2, type_pb2, api_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2,
        struct_pb2, timestamp_pb2, wrappers_pb2,
    )
}  # fmt: skip


class MessageForm:
    """One message of a description, with all that it is made of. Safe from any thread."""

    def __init__(self, pool: DescriptorPool, descriptor: Descriptor) -> None:
        self._pool = pool
        self.descriptor = descriptor
        self._type = message_factory.GetMessageClass(descriptor)

    @property
    def name(self) -> str:
        return str(self.descriptor.full_name)

    def to_json(self, data: bytes) -> dict[str, Any]:
        """What the payload holds, by the fields' own names. UndecodableMessage where it is something else, or so large
        that nobody would want it so."""
        if len(data) > MAX_DECODED_BYTES:
            raise UndecodableMessage(
                f"the payload has {len(data)} bytes; up to {MAX_DECODED_BYTES} are decoded, take it as bytes instead"
            )
        try:
            found: dict[str, Any] = json_format.MessageToDict(
                self._type.FromString(data), preserving_proto_field_name=True, descriptor_pool=self._pool
            )
        except _FAILURES as error:
            raise UndecodableMessage(
                f"the payload is not a {self.name}: {_shortened(error)}", type=self.name
            ) from error
        return found

    def unnamed_bytes(self, data: bytes) -> int:
        """How much of a payload that `to_json` takes are fields that the description does not name, such as a newer
        version's: JSON has none of them."""
        message = self._type.FromString(data)
        size = message.ByteSize()
        message.DiscardUnknownFields()
        return int(size - message.ByteSize())

    def from_json(self, value: object) -> bytes:
        """The payload with these values. InvalidMessage names the field that cannot be."""
        if not isinstance(value, dict):
            raise InvalidMessage(f"a {self.name} is a JSON object; {type(value).__name__} was given", type=self.name)
        try:
            message = json_format.ParseDict(
                value, self._type(), descriptor_pool=self._pool, max_recursion_depth=_DEEPEST_JSON
            )
            return message.SerializeToString(deterministic=True)
        except _FAILURES as error:
            raise InvalidMessage(f"this is no {self.name}: {_shortened(error)}", type=self.name) from error


def load_form(descriptors: bytes, message: str) -> MessageForm:
    """The message of that name in a serialised FileDescriptorSet. Google's own files need not be in it, and are not
    taken from it. ConfigurationError says what is wrong."""
    files = _parse(descriptors)
    pool = DescriptorPool()
    for file in _in_order(files):
        _add(pool, file)
    try:
        return MessageForm(pool, pool.FindMessageTypeByName(message))
    except KeyError:
        names = ", ".join(sorted(_names(files))[:10]) or "none"
        raise ConfigurationError(f"there is no message {message!r} in the description; there are: {names}") from None


def message_names(descriptors: bytes) -> list[str]:
    """All messages of a serialised FileDescriptorSet, in order. ConfigurationError for what is none."""
    return sorted(_names(_parse(descriptors)))


def _parse(descriptors: bytes) -> FileDescriptorSet:
    check_size("the description", len(descriptors))
    try:
        files = FileDescriptorSet.FromString(descriptors)
    except DecodeError as error:
        raise ConfigurationError(
            f"this is no FileDescriptorSet: {error}; make one with protoc --include_imports --descriptor_set_out"
        ) from error
    check_limits(files)
    return files


def _in_order(files: FileDescriptorSet) -> Iterator[FileDescriptorProto]:
    """Each after those that it imports."""
    there = {file.name: file for file in files.file if file.name not in _WELL_KNOWN}
    graph: dict[str, list[str]] = {}
    waiting = sorted(there)
    while waiting:
        if (name := waiting.pop()) not in graph:
            graph[name] = list(_imports(name, there))
            waiting += graph[name]
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise ConfigurationError(f"files import each other in a circle: {', '.join(error.args[1])}") from None
    yield from (there[name] if name in there else _well_known(name) for name in order)


def _imports(name: str, there: dict[str, FileDescriptorProto]) -> Iterable[str]:
    if name in there:
        return there[name].dependency
    if name in _WELL_KNOWN:
        return [one.name for one in _WELL_KNOWN[name].dependencies]
    raise ConfigurationError(f"file {name!r} is imported and is not there; send it along")


def _well_known(name: str) -> FileDescriptorProto:
    file = FileDescriptorProto()
    _WELL_KNOWN[name].CopyToProto(file)
    return file


def _add(pool: DescriptorPool, file: FileDescriptorProto) -> None:
    try:
        pool.AddSerializedFile(file.SerializeToString())
    except (TypeError, ValueError, KeyError) as error:
        raise ConfigurationError(f"file {file.name!r} cannot be used: {_shortened(error)}") from error


def _names(files: FileDescriptorSet) -> Iterator[str]:
    for file in files.file:
        yield from _names_in(f"{file.package}." if file.package else "", file.message_type)


def _names_in(scope: str, messages: Iterable[DescriptorProto]) -> Iterator[str]:
    for message in messages:
        if not message.options.map_entry:
            yield f"{scope}{message.name}"
            yield from _names_in(f"{scope}{message.name}.", message.nested_type)


def _shortened(error: Exception) -> str:
    """What a library says may repeat all that it was given."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}…"
