"""Text as it is written in a variable or a file, and the typed value it stands for."""

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from queuecore.config.fields import Leaf

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def parse(leaf: Leaf, raw: str) -> Any:
    """The value; ValueError or QueueError says what is wrong with the text."""
    value = leaf.metadata["parse"](raw) if leaf.metadata["parse"] else _parse(leaf.hint, raw)
    minimum, maximum = leaf.metadata["minimum"], leaf.metadata["maximum"]
    if minimum is not None and value < minimum:
        raise ValueError(f"is below {minimum}")
    if maximum is not None and value > maximum:
        raise ValueError(f"is above {maximum}")
    return value


def kind(leaf: Leaf) -> str:
    """What kind of text is expected, in words."""
    if leaf.metadata["kind"]:
        return str(leaf.metadata["kind"])
    if get_origin(leaf.hint) is Literal:
        return " \\| ".join(filter(None, get_args(leaf.hint)))
    if get_origin(leaf.hint) is tuple:
        return "comma-separated list"
    return {str: "text", int: "whole number", bool: "true or false", Path: "folder"}[leaf.hint]


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
        raise ValueError(f"is not one of {', '.join(filter(None, choices))}")
    return raw


def _boolean(raw: str) -> bool:
    if raw.lower() in _TRUE | _FALSE:
        return raw.lower() in _TRUE
    raise ValueError("is neither true nor false")


def _whole_number(raw: str) -> int:
    try:
        return int(raw)
    except ValueError:
        raise ValueError("is not a whole number") from None


_PARSERS: dict[Any, Callable[[str], Any]] = {str: str, int: _whole_number, bool: _boolean, Path: Path}
