"""YAML as plain values, read event by event: nothing is made of it but what JSON has too, and however a document is
nested or refers to itself, no more is made than the limits allow."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from queueapi.errors import InvalidInput

# Of a document whose aliases are written out. The largest that REST takes has far fewer.
MAX_VALUES: Final = 500_000

_TAG: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_TAG}str"
_resolver = Resolver()
_constructor = SafeConstructor()
# Whatever else a plain scalar may look like, a date for example, is text.
_SCALARS: Final[Mapping[str, Callable[[yaml.ScalarNode], Any]]] = {
    f"{_TAG}null": lambda _: None,
    f"{_TAG}bool": _constructor.construct_yaml_bool,
    f"{_TAG}int": _constructor.construct_yaml_int,
    f"{_TAG}float": _constructor.construct_yaml_float,
}
_ALLOWED_TAGS: Final = {None, "!", _TEXT, f"{_TAG}map", f"{_TAG}seq", *_SCALARS}


class UnreadableYaml(InvalidInput):
    """`line` is counted from 1."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(f"line {line}: {why}", line=line)


@dataclass(slots=True)
class _Open:
    """A list or mapping that has not ended; `key` is set between a key and its value."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    size: int = 1
    key: str | None = None


@dataclass(slots=True)
class _Reader:
    max_depth: int
    stack: list[_Open] = field(default_factory=list)
    # Values that have ended, with how many they hold.
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    documents: list[Any] = field(default_factory=list)

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent() if self.documents:
                raise _refused("a second document begins here; give one", event)
            case yaml.ScalarEvent():
                self._check_tag(event)
                self._add(_scalar(event), 1, event, event.anchor)
            case yaml.AliasEvent():
                if event.anchor not in self.anchors:
                    raise _refused(f"*{event.anchor} refers to nothing that has ended before it", event)
                self._add(*self.anchors[event.anchor], event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._check_tag(event)
                self._open({} if isinstance(event, yaml.MappingStartEvent) else [], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = self.stack.pop()
                self._add(ended.value, ended.size, event, ended.anchor)

    def _open(self, value: dict[str, Any] | list[Any], event: Any) -> None:
        if len(self.stack) >= self.max_depth:
            raise _refused(f"this is nested too deeply; {self.max_depth} levels are the most", event)
        if self.stack and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None:
            raise _refused("a key must be a single text", event)
        self.stack.append(_Open(value, event.anchor))

    def _add(self, value: Any, size: int, event: yaml.Event, anchor: str | None = None) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, size)
        if not self.stack:
            self.documents.append(value)
            return
        inside = self.stack[-1]
        inside.size += size
        if inside.size > MAX_VALUES:
            raise _refused(f"with its aliases written out it has more than {MAX_VALUES:,} values", event)
        if isinstance(inside.value, list):
            inside.value.append(value)
        elif inside.key is None:
            inside.key = _key(inside.value, value, event)
        else:
            inside.value[inside.key], inside.key = value, None

    def _check_tag(self, event: Any) -> None:
        if event.tag not in _ALLOWED_TAGS:
            raise _refused(f"the tag {event.tag[:60]!r} is not read here; leave it out", event)


def read_yaml(text: str, max_depth: int) -> Any:
    """What it says, of dict, list, str, int, float, bool and None. UnreadableYaml says in which line what is wrong."""
    reader = _Reader(max_depth)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = ", ".join(filter(None, (error.context, error.problem)))
        raise UnreadableYaml(f"this is not YAML: {told}", mark.line + 1 if mark else 1) from error
    except yaml.YAMLError as error:
        raise UnreadableYaml(f"this is not YAML: {' '.join(str(error).split())}", 1) from error
    return reader.documents[0] if reader.documents else None


def _scalar(event: yaml.ScalarEvent) -> Any:
    """As PyYAML resolves and writes it, so that what was written is read as it was."""
    tag = event.tag
    if tag in (None, "!"):
        tag = _resolver.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
    make = _SCALARS.get(tag)
    if make is None:
        return event.value
    try:
        made = make(yaml.ScalarNode(tag, event.value))
    except (ValueError, KeyError, IndexError):
        made = math.nan
    if isinstance(made, float) and not math.isfinite(made):
        raise _refused(f"{event.value[:30]!r} is no {tag.removeprefix(_TAG)} that can be used", event)
    return made


def _key(mapping: Mapping[str, Any], value: Any, event: yaml.Event) -> str:
    key = value if isinstance(value, str) else None
    if key is None:
        raise _refused(f"a key must be a text; write {value!r} in quotes where it is one", event)
    if key in mapping:
        raise _refused(f"the key {key[:60]!r} is here a second time", event)
    return key


def _refused(why: str, event: yaml.Event) -> UnreadableYaml:
    return UnreadableYaml(why, event.start_mark.line + 1 if event.start_mark else 1)
