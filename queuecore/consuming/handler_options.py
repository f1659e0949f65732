"""What a queue may configure about its handler: a frozen dataclass, filled from JSON.

    @dataclass(frozen=True, slots=True)
    class MailOptions:
        sender: str                                      # without a default: the queue must say it
        copies: tuple[str, ...] = ()
        password: str = field(default="", metadata=SECRET_OPTION)
        url: str = field(default="", metadata=ADDRESS_OPTION)

Fields are `str`, `int`, `float`, `bool`, a `Literal` of texts, `tuple[str, ...]` (a JSON list) or `Mapping[str, str]`
(a JSON object). What goes beyond the type is checked in `__post_init__`, with a ConfigurationError.
"""

import dataclasses
import difflib
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints, runtime_checkable
from urllib.parse import urlsplit

from queuecore.errors import ConfigurationError

# Metadata of a field whose value nobody may see again.
SECRET_OPTION: Final[Mapping[str, bool]] = MappingProxyType({"secret": True})
# Metadata of a field with a web address. Only its host is shown, as the path often is a secret; and secrets that were
# given for one host are not kept for another.
ADDRESS_OPTION: Final[Mapping[str, bool]] = MappingProxyType({"address": True})
# What is shown instead, and what, when it is given back, means: as it was.
HIDDEN: Final = "********"

_PLAIN: Final[dict[object, tuple[tuple[type, ...], str]]] = {
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
}
_TEXTS: Final = "a list of texts"
_MAPPING: Final = "an object of texts"

T = TypeVar("T")


@runtime_checkable
class ChecksQueue(Protocol):
    """Options that do not suit every queue."""

    def check_queue(self, queue: str) -> None:
        """ConfigurationError where the queue of that name cannot have them."""


def check_options_type(kind: type[object]) -> None:
    """ConfigurationError where a queue could not fill this."""
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ConfigurationError(f"the options {kind!r} are no frozen dataclass; decorate it so")
    for name, hint in get_type_hints(kind).items():
        if not _expected(hint):
            raise ConfigurationError(
                f"the option {kind.__qualname__}.{name} is a {hint!r}, which JSON cannot fill; use str, int, float, "
                "bool, a Literal of texts, tuple[str, ...] or Mapping[str, str]"
            )


def read_options(kind: type[T], values: Mapping[str, object]) -> T:
    """The options with these values. ConfigurationError lists everything wrong with them."""
    hints = get_type_hints(kind)
    if problems := [*_misnamed(hints, values), *_missing(kind, values), *_mistyped(kind, hints, values)]:
        raise ConfigurationError("; ".join(problems))
    return kind(**{name: _frozen(value) for name, value in values.items()})


@dataclasses.dataclass(frozen=True, slots=True)
class OptionHelp:
    """An option as people are told of it: what it `expects`, and what it is where nobody says; None: it is needed."""

    name: str
    expects: str
    default: str | None
    is_secret: bool


def option_helps(kind: type[object]) -> list[OptionHelp]:
    """What a queue may configure, in the order of its fields."""
    hints, secrets = get_type_hints(kind), _names_with("secret", kind)
    return [
        OptionHelp(field.name, _expected(hints[field.name]), _default(field), field.name in secrets)
        for field in _fields(kind)
    ]


def hide_secrets(kind: type[object], values: Mapping[str, object]) -> dict[str, object]:
    """The values as people may see them."""
    secrets, addresses = _names_with("secret", kind), _names_with("address", kind)
    hidden = {name: HIDDEN for name in secrets if values.get(name)}
    shown = {name: _shown_address(values[name]) for name in addresses if values.get(name)}
    return {**values, **hidden, **shown}


def keep_secrets(kind: type[object], values: Mapping[str, object], before: Mapping[str, object]) -> dict[str, object]:
    """New values, with those that come back hidden as they were before. ConfigurationError names those that have to be
    entered themselves: nobody knows them, or they were meant for another host."""
    shown, addresses = hide_secrets(kind, before), _names_with("address", kind)
    hidden = {name for name, value in values.items() if _is_hidden(kind, name, value)}
    kept = {name: before[name] for name in hidden if shown.get(name) == values[name]}
    entered = {**values, **kept}
    is_moved = any(_host_or_all(entered.get(name)) != _host_or_all(before.get(name)) for name in addresses)
    if again := hidden if is_moved else hidden - kept.keys():
        names = ", ".join(repr(name) for name in sorted(again))
        raise ConfigurationError(
            f"{names} came back hidden: {HIDDEN} stands for a value that is not shown, which is kept for the handler "
            "and the host alone that it was entered for; enter the value itself, or leave it out"
        )
    return entered


def _is_hidden(kind: type[object], name: str, value: object) -> bool:
    """Also one that nobody hides: of a handler that is not known here, all are."""
    if name in _names_with("address", kind):
        return isinstance(value, str) and value.endswith(HIDDEN)
    if isinstance(value, Mapping):
        return HIDDEN in value.values()
    return HIDDEN in value if isinstance(value, list | tuple) else value == HIDDEN


def _shown_address(value: object) -> object:
    """With its scheme and host alone. What is no address is shown whole where it is no text either."""
    if not isinstance(value, str):
        return value
    host = _host(value)
    return value if host is not None and value in (host, f"{host}/") else f"{host}/{HIDDEN}" if host else HIDDEN


def _host_or_all(value: object) -> object:
    return _host(value) or value


def _host(value: object) -> str | None:
    """The scheme, host and port that an address begins with; None where it has none that can be told."""
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if parts is None or not parts.scheme or not parts.hostname:
        return None
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"


def _names_with(metadata: str, kind: type[object]) -> set[str]:
    return {field.name for field in _fields(kind) if field.metadata.get(metadata)}


def _fields(kind: type[object]) -> tuple["dataclasses.Field[Any]", ...]:
    return dataclasses.fields(kind)  # type: ignore[arg-type]


def _default(field: "dataclasses.Field[Any]") -> str | None:
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    elif field.default is dataclasses.MISSING:
        return None
    else:
        value = field.default
    if isinstance(value, Mapping | tuple):
        return json.dumps(dict(value) if isinstance(value, Mapping) else list(value))
    return json.dumps(value)


def _misnamed(hints: Mapping[str, object], values: Mapping[str, object]) -> Iterator[str]:
    for name in values:
        if name not in hints:
            close = difflib.get_close_matches(str(name), hints, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(hints) or 'none'}"
            yield f"there is no option {name!r}; {hint}"


def _missing(kind: type[object], values: Mapping[str, object]) -> Iterator[str]:
    for field in _fields(kind):
        is_needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if is_needed and field.name not in values:
            yield f"the option {field.name!r} is missing; give it"


def _mistyped(kind: type[object], hints: Mapping[str, object], values: Mapping[str, object]) -> Iterator[str]:
    for name, value in hide_secrets(kind, values).items():
        if name in hints and not _fits(hints[name], values[name]):
            yield f"the option {name!r} is {value!r}; give {_expected(hints[name])}"


def _expected(hint: object) -> str:
    """What a value has to be, in words; empty where JSON has nothing like it."""
    if hint in _PLAIN:
        return _PLAIN[hint][1]
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if hint == tuple[str, ...]:
        return _TEXTS
    return _MAPPING if hint == Mapping[str, str] else ""


def _fits(hint: object, value: object) -> bool:
    if hint in _PLAIN:
        return isinstance(value, _PLAIN[hint][0]) and (hint is bool or not isinstance(value, bool))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint == tuple[str, ...]:
        return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return isinstance(value, Mapping) and all(isinstance(one, str) for pair in value.items() for one in pair)


def _frozen(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value
