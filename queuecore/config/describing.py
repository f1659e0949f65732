"""Settings as their reference shows them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from queuecore.config.fields import Leaf, leaves
from queuecore.config.values import kind


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting as the reference documents it. `key` is empty where it cannot stand in the file."""

    variable: str
    alias: str
    key: str
    kind: str
    default: str
    help_text: str
    secret: bool


def describe(settings_class: type[Any]) -> Iterator[SettingInfo]:
    by_variable: dict[str, Leaf] = {}
    for leaf in leaves(settings_class):
        by_variable.setdefault(leaf.variable, leaf)
    for leaf in by_variable.values():
        yield SettingInfo(
            variable=leaf.variable,
            alias=leaf.metadata["alias"],
            key=leaf.key if leaf.is_in_section else "",
            kind=kind(leaf),
            default=_shown(leaf.default),
            help_text=_help_text(leaf),
            secret=leaf.metadata["secret"],
        )


def _help_text(leaf: Leaf) -> str:
    text, general = str(leaf.metadata["help"]), leaf.metadata["falls_back_to"]
    return f"{text} Where it is not set, `{general}` counts." if general else text


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(default)
    return str(default)
