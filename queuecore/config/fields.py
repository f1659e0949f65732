"""What a settings class is made of, and the list of its settings."""

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

PREFIX = "SWITCHYARD_"


def setting(
    default: Any,
    help_text: str,
    *,
    key: str = "",
    secret: bool = False,
    alias: str = "",
    minimum: int | None = None,
    maximum: int | None = None,
    parse: Callable[[str], Any] | None = None,
    kind: str = "",
    falls_back_to: str = "",
    is_mapping: bool = False,
) -> Any:
    """A field of a settings class. A secret is no part of its representation.

    key            how it is called within its section, where that is not the field's name; two fields of one key are
                   two views of one setting, the first of which counts in the reference
    alias          a second variable, read when the first is not set
    parse, kind    how text becomes the value (or a ValueError or QueueError), and what that text is called
    falls_back_to  the whole key of a more general setting, whose value counts when this one is not set
    is_mapping     whether the file may hold names and values below the key, instead of `name:value;name2:value2`
    """
    metadata = {
        "help": help_text,
        "key": key,
        "secret": secret,
        "alias": alias,
        "minimum": minimum,
        "maximum": maximum,
        "parse": parse,
        "kind": kind,
        "falls_back_to": falls_back_to,
        "is_mapping": is_mapping,
    }
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)


def section(key: str = "") -> dict[str, Any]:
    """The metadata of a field whose default is a settings class of its own: `field(default=…, metadata=section())`."""
    return {"key": key, "section": True}


@dataclasses.dataclass(frozen=True, slots=True)
class Leaf:
    """One setting, wherever in the sections of its class it is. `names` leads there by the names of fields."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    hint: Any
    default: Any
    metadata: Any

    @property
    def key(self) -> str:
        return ".".join(self.keys)

    @property
    def variable(self) -> str:
        return PREFIX + re.sub("[.-]", "_", self.key).upper()

    @property
    def is_in_section(self) -> bool:
        return "." in self.key


def leaves(settings: Any, names: tuple[str, ...] = (), keys: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Every setting of a settings class, or of an instance whose values are the defaults."""
    hints = get_type_hints(settings if isinstance(settings, type) else type(settings))
    for field in dataclasses.fields(settings):
        path = (*names, field.name), (*keys, field.metadata["key"] or field.name)
        default = _default(settings, field)
        if "section" in field.metadata:
            yield from leaves(default, *path)
        else:
            yield Leaf(*path, hints[field.name], default, field.metadata)


def build(settings: Any, values: dict[tuple[str, ...], Any], names: tuple[str, ...] = ()) -> Any:
    """An instance with these values, by their paths, and the defaults of the class or instance for the rest."""
    given = {path[len(names)] for path in values if path[: len(names)] == names}
    changes = {}
    for field in dataclasses.fields(settings):
        path = (*names, field.name)
        if field.name in given:
            is_section = "section" in field.metadata
            changes[field.name] = build(_default(settings, field), values, path) if is_section else values[path]
    return settings(**changes) if isinstance(settings, type) else dataclasses.replace(settings, **changes)


def _default(settings: Any, field: "dataclasses.Field[Any]") -> Any:
    return field.default if isinstance(settings, type) else getattr(settings, field.name)
