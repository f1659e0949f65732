"""Parts of a `.proto` source that files, messages and enums share: numbers, ranges, options, and enums themselves."""

from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

from queuecore.errors import ConfigurationError
from queuecore.messagetypes.tokens import Tokens

_LAST_FIELD: Final = 2**29 - 1
_LAST_VALUE: Final = 2**31 - 1

Options = dict[str, str]


def read_enum(tokens: Tokens, enum: EnumDescriptorProto) -> None:
    enum.name = tokens.plain_name()
    tokens.expect("{")
    while not tokens.skip("}"):
        if tokens.skip(";"):
            continue
        match word := tokens.name():
            case "option":
                if read_option(tokens) == ("allow_alias", "true"):
                    enum.options.allow_alias = True
            case "reserved":
                read_reserved(tokens, enum)
                continue
            case _:
                tokens.expect("=")
                enum.value.add(name=word, number=_between(tokens, -_LAST_VALUE - 1, _LAST_VALUE))
                read_options(tokens)
        tokens.expect(";")


def read_reserved(tokens: Tokens, owner: DescriptorProto | EnumDescriptorProto) -> None:
    """A message's ranges end before their last number, an enum's with it."""
    is_enum = isinstance(owner, EnumDescriptorProto)
    while True:
        if tokens.peek().kind == "text":
            owner.reserved_name.append(tokens.text())
        else:
            first, last = _range(tokens, is_enum=is_enum)
            owner.reserved_range.add(start=first, end=last if is_enum else last + 1)
        if not tokens.skip(","):
            break
    tokens.expect(";")


def read_extensions(tokens: Tokens, message: DescriptorProto) -> None:
    while True:
        first, last = _range(tokens, is_enum=False)
        message.extension_range.add(start=first, end=last + 1)
        if not tokens.skip(","):
            break
    read_options(tokens)
    tokens.expect(";")


def _range(tokens: Tokens, *, is_enum: bool) -> tuple[int, int]:
    least, most = (-_LAST_VALUE - 1, _LAST_VALUE) if is_enum else (1, _LAST_FIELD)
    first = _between(tokens, least, most)
    if not tokens.skip("to"):
        return first, first
    return first, most if tokens.skip("max") else _between(tokens, first, most)


def read_field_number(tokens: Tokens) -> int:
    return _between(tokens, 1, _LAST_FIELD)


def _between(tokens: Tokens, least: int, most: int) -> int:
    line, number = tokens.peek().line, tokens.whole_number()
    if not least <= number <= most:
        raise ConfigurationError(f"{tokens.file}, line {line}: {number} cannot be; use {least} to {most}")
    return number


def read_options(tokens: Tokens) -> Options:
    """What stands in brackets behind a field or value."""
    found: Options = {}
    if tokens.skip("["):
        while True:
            name, value = read_option(tokens)
            found[name] = value
            if not tokens.skip(","):
                break
        tokens.expect("]")
    return found


def read_option(tokens: Tokens) -> tuple[str, str]:
    """Its name and value; of one that is somebody's own, no more than that it is there."""
    name = ""
    if tokens.skip("("):
        name = f"({tokens.name()})"
        tokens.expect(")")
        if tokens.peek().kind == "name":
            tokens.take()
    else:
        name = tokens.name()
    tokens.expect("=")
    if tokens.peek().text == "{":
        pass_over(tokens)
        return name, ""
    is_negative = tokens.skip("-")
    token = tokens.take()
    if token.kind not in ("name", "number", "text"):
        raise tokens.wrong("a value")
    value = token.text[1:-1] if token.kind == "text" else token.text
    return name, f"-{value}" if is_negative else value


def pass_over(tokens: Tokens) -> None:
    """All between this brace and its counterpart."""
    tokens.expect("{")
    depth = 1
    while depth:
        if tokens.is_over:
            raise tokens.wrong("'}'")
        token = tokens.take()
        if token.kind == "mark":
            depth += (token.text == "{") - (token.text == "}")
