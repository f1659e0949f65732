"""Typed settings from environment variables.

A settings class is a frozen dataclass whose fields are made by `setting`. `load` reads it in one go, and
reports everything that is wrong at once; a variable nobody knows is an error that suggests the right one.
"""

import dataclasses
import difflib
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from queuecore.errors import ConfigurationError

PREFIX = "SWITCHYARD_"

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}

T = TypeVar("T")


def setting(
    default: Any,
    help_text: str,
    *,
    secret: bool = False,
    alias: str = "",
    minimum: int | None = None,
    maximum: int | None = None,
) -> Any:
    """A field of a settings class. `alias` is a second variable name, read when the first is not set."""
    metadata = {"help": help_text, "secret": secret, "alias": alias, "minimum": minimum, "maximum": maximum}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting as the reference documents it."""

    variable: str
    alias: str
    kind: str
    default: str
    help_text: str
    secret: bool


def variable_name(field_name: str) -> str:
    return PREFIX + field_name.upper()


def load(settings_class: type[T], environ: Mapping[str, str]) -> T:
    """An instance of the class, or one ConfigurationError that lists everything wrong."""
    hints = get_type_hints(settings_class)
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in dataclasses.fields(settings_class):  # type: ignore[arg-type]
        name, raw = _find(field, environ)
        if raw is None:
            continue
        try:
            values[field.name] = _checked(_parse(hints[field.name], raw), field)
        except ValueError as error:
            shown = "its value" if field.metadata["secret"] else repr(raw)
            problems.append(f"{name}: {shown} {error}")
    problems += _unknown(settings_class, environ)
    if problems:
        raise ConfigurationError("; ".join(problems))
    return settings_class(**values)


def describe(settings_class: type[Any]) -> Iterator[SettingInfo]:
    hints = get_type_hints(settings_class)
    for field in dataclasses.fields(settings_class):
        yield SettingInfo(
            variable=variable_name(field.name),
            alias=field.metadata["alias"],
            kind=_kind(hints[field.name]),
            default=_shown(field.default),
            help_text=field.metadata["help"],
            secret=field.metadata["secret"],
        )


def _find(field: "dataclasses.Field[Any]", environ: Mapping[str, str]) -> tuple[str, str | None]:
    name = variable_name(field.name)
    alias = field.metadata["alias"]
    if name not in environ and alias in environ:
        return alias, environ[alias]
    return name, environ.get(name)


def _parse(hint: Any, raw: str) -> Any:
    origin = get_origin(hint)
    if origin is Literal:
        return _choice(raw, get_args(hint))
    if origin in (Union, types.UnionType):
        return _parse(next(part for part in get_args(hint) if part is not type(None)), raw) if raw else None
    if origin is tuple:
        return tuple(part.strip() for part in raw.split(",") if part.strip())
    return _PARSERS[hint](raw)


def _choice(raw: str, choices: tuple[str, ...]) -> str:
    if raw not in choices:
        raise ValueError(f"is not one of {', '.join(choices)}")
    return raw


def _boolean(raw: str) -> bool:
    if raw.lower() in _TRUE | _FALSE:
        return raw.lower() in _TRUE
    raise ValueError("is neither true nor false")


def _integer(raw: str) -> int:
    try:
        return int(raw)
    except ValueError:
        raise ValueError("is not a whole number") from None


_PARSERS: dict[Any, Callable[[str], Any]] = {str: str, int: _integer, bool: _boolean, Path: Path}


def _checked(value: Any, field: "dataclasses.Field[Any]") -> Any:
    minimum, maximum = field.metadata["minimum"], field.metadata["maximum"]
    if minimum is not None and value < minimum:
        raise ValueError(f"is below {minimum}")
    if maximum is not None and value > maximum:
        raise ValueError(f"is above {maximum}")
    return value


def _unknown(settings_class: type[Any], environ: Mapping[str, str]) -> Iterator[str]:
    known = {field.name.upper() for field in dataclasses.fields(settings_class)}
    for name in sorted(environ):
        if name.startswith(PREFIX) and (bare := name.removeprefix(PREFIX)) not in known:
            close = difflib.get_close_matches(bare, known, n=1)
            yield f"{name} is not a setting" + (f"; did you mean {PREFIX}{close[0]}?" if close else "")


def _kind(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " \\| ".join(get_args(hint))
    if get_origin(hint) is tuple:
        return "comma-separated list"
    return {str: "text", int: "whole number", bool: "true or false", Path: "folder"}[hint]


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(default)
    return str(default)
