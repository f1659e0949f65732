"""Sources of message types, compiled without a compiler: what a `.proto` file says of messages and enums.

Services, and options but those that change what is stored, are passed over. `extend`, `group` and editions are refused:
protoc makes a description of them, which is taken as it is.
"""

from collections.abc import Mapping
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from queuecore.errors import ConfigurationError
from queuecore.messagetypes.limits import DEEPEST, MAX_FILES, check_size
from queuecore.messagetypes.parts import (
    Options,
    pass_over,
    read_enum,
    read_extensions,
    read_field_number,
    read_option,
    read_options,
    read_reserved,
)
from queuecore.messagetypes.tokens import Tokens

_SCALARS: Final = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in FieldDescriptorProto.Type.items()
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
_LABELS: Final = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


def compile_sources(sources: Mapping[str, str]) -> bytes:
    """A serialised FileDescriptorSet of these files, by their names. ConfigurationError names file and line."""
    check_size("the source", sum(len(source.encode(errors="replace")) for source in sources.values()))
    if not 1 <= len(sources) <= MAX_FILES:
        raise ConfigurationError(f"{len(sources)} files were given; give 1 to {MAX_FILES}")
    files = [_File(name, source).compile() for name, source in sources.items()]
    return FileDescriptorSet(file=files).SerializeToString()


class _File:
    def __init__(self, name: str, source: str) -> None:
        self._tokens = Tokens(name, source)
        self._file = FileDescriptorProto(name=name, syntax="proto2")

    def compile(self) -> FileDescriptorProto:
        while not self._tokens.is_over:
            self._statement()
        if self._file.syntax == "proto2":
            # It is not said where it goes without saying.
            self._file.ClearField("syntax")
        return self._file

    def _statement(self) -> None:
        tokens = self._tokens
        if tokens.skip(";"):
            return
        match tokens.name():
            case "syntax":
                self._syntax()
            case "package":
                self._file.package = tokens.name()
                tokens.expect(";")
            case "import":
                self._import()
            case "option":
                read_option(tokens)
                tokens.expect(";")
            case "message":
                self._message(self._file.message_type.add(), 1)
            case "enum":
                read_enum(tokens, self._file.enum_type.add())
            case "service":
                tokens.name()
                pass_over(tokens)
            case other:
                raise ConfigurationError(
                    f"{tokens.file}: {other!r} is not understood; send what protoc makes of it (--descriptor_set_out)"
                )

    def _syntax(self) -> None:
        self._tokens.expect("=")
        syntax = self._tokens.text()
        if syntax not in ("proto2", "proto3"):
            raise ConfigurationError(f"{self._tokens.file}: syntax {syntax!r} is not known; use proto2 or proto3")
        self._file.syntax = syntax
        self._tokens.expect(";")

    def _import(self) -> None:
        if self._tokens.skip("public"):
            self._file.public_dependency.append(len(self._file.dependency))
        else:
            self._tokens.skip("weak")
        self._file.dependency.append(self._tokens.text())
        self._tokens.expect(";")

    def _message(self, message: DescriptorProto, depth: int) -> None:
        if depth > DEEPEST:
            raise ConfigurationError(f"{self._tokens.file}: messages are nested more than {DEEPEST} deep; flatten them")
        message.name = self._tokens.plain_name()
        self._tokens.expect("{")
        while not self._tokens.skip("}"):
            self._member(message, depth)
        _choose_each(message)

    def _member(self, message: DescriptorProto, depth: int) -> None:
        tokens = self._tokens
        if tokens.skip(";"):
            return
        match word := tokens.name():
            case "message":
                self._message(message.nested_type.add(), depth + 1)
            case "enum":
                read_enum(tokens, message.enum_type.add())
            case "oneof":
                self._oneof(message)
            case "reserved":
                read_reserved(tokens, message)
            case "extensions":
                read_extensions(tokens, message)
            case "option":
                read_option(tokens)
                tokens.expect(";")
            case "extend" | "group":
                raise tokens.wrong(f"something else than {word!r}, which only protoc understands,")
            case "map" if tokens.peek().text == "<":
                self._map(message)
            case _:
                self._field(message, word)

    def _oneof(self, message: DescriptorProto) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._tokens.plain_name())
        self._tokens.expect("{")
        while not self._tokens.skip("}"):
            if self._tokens.skip(";"):
                continue
            if (word := self._tokens.name()) == "option":
                read_option(self._tokens)
                self._tokens.expect(";")
                continue
            self._field(message, word).oneof_index = index

    def _field(self, message: DescriptorProto, word: str) -> FieldDescriptorProto:
        field = message.field.add(label=_LABELS.get(word, FieldDescriptorProto.LABEL_OPTIONAL))
        if word in _LABELS:
            field.proto3_optional = word == "optional" and self._file.syntax == "proto3"
            if not field.proto3_optional:
                field.ClearField("proto3_optional")
            word = self._tokens.name()
        if word == "group":
            raise self._tokens.wrong("something else than 'group', which only protoc understands,")
        _set_type(field, word)
        field.name = self._tokens.plain_name()
        self._tokens.expect("=")
        field.number = read_field_number(self._tokens)
        _set_options(field, read_options(self._tokens))
        self._tokens.expect(";")
        return field

    def _map(self, message: DescriptorProto) -> None:
        tokens = self._tokens
        tokens.expect("<")
        key = tokens.name()
        tokens.expect(",")
        value = tokens.name()
        tokens.expect(">")
        name = tokens.plain_name()
        entry = message.nested_type.add(name=f"{''.join(map(_capitalized, name.split('_')))}Entry")
        entry.options.map_entry = True
        for number, (inner, kind) in enumerate((("key", key), ("value", value)), 1):
            _set_type(entry.field.add(name=inner, number=number, label=_LABELS["optional"]), kind)
        tokens.expect("=")
        field = message.field.add(name=name, label=_LABELS["repeated"], number=read_field_number(tokens))
        field.type_name = entry.name
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        _set_options(field, read_options(tokens))
        tokens.expect(";")


def _choose_each(message: DescriptorProto) -> None:
    """What `optional` means in proto3: a choice between this one field and nothing, behind all that somebody wrote."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _set_type(field: FieldDescriptorProto, word: str) -> None:
    """Whether another name is a message or an enum shows when all files are there."""
    if (scalar := _SCALARS.get(word)) is not None:
        field.type = scalar
    else:
        field.type_name = word


def _set_options(field: FieldDescriptorProto, options: Options) -> None:
    if "json_name" in options:
        field.json_name = options["json_name"]
    if "default" in options:
        field.default_value = options["default"]
    if "packed" in options:
        field.options.packed = options["packed"] == "true"


def _capitalized(word: str) -> str:
    return word[:1].upper() + word[1:]
