"""How large a description of message types may be. It is anybody's bytes: more than this is not looked at."""

from collections.abc import Iterable
from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet

from queuecore.errors import ConfigurationError

MAX_BYTES: Final = 256 * 1024
MAX_FILES: Final = 100
MAX_TYPES: Final = 2_000
MAX_FIELDS: Final = 10_000
DEEPEST: Final = 32
LONGEST_NAME: Final = 255


def check_size(what: str, size: int) -> None:
    """ConfigurationError where it is more bytes than are looked at."""
    if size > MAX_BYTES:
        raise ConfigurationError(f"{what} has {size} bytes; {MAX_BYTES} is the most, leave out what is not needed")


def check_limits(files: FileDescriptorSet) -> None:
    """ConfigurationError where there is more of something than anybody needs."""
    _check("files", len(files.file), MAX_FILES)
    types = fields = 0
    waiting = [(message, 1) for file in files.file for message in file.message_type]
    types += sum(len(file.enum_type) for file in files.file)
    while waiting:
        message, depth = waiting.pop()
        types += 1 + len(message.enum_type)
        fields += len(message.field) + sum(len(enum.value) for enum in message.enum_type)
        _check("messages and enums", types, MAX_TYPES)
        _check("fields and values", fields, MAX_FIELDS)
        _check("levels of nested messages", depth, DEEPEST)
        _check_names(_names(message))
        waiting += [(inner, depth + 1) for inner in message.nested_type]


def _names(message: DescriptorProto) -> Iterable[str]:
    yield message.name
    for field in message.field:
        yield field.name
        # What its JSON calls it.
        yield field.json_name


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if len(name) > LONGEST_NAME:
            raise ConfigurationError(f"the name {name[:30]}… has {len(name)} characters; {LONGEST_NAME} is the most")


def _check(what: str, number: int, most: int) -> None:
    if number > most:
        raise ConfigurationError(f"there are {number} {what} or more; {most} is the most")
