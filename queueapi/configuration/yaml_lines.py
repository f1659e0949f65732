"""In which line of a YAML text a place of the document is: `queues[3].partitions`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import yaml

# What problems name: a section, an entry, a key of it.
_DEPTH: Final = 3


class Lines:
    """Of a text that `read_yaml` has read. It is looked at once somebody asks: nobody does where nothing is wrong."""

    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, place: str) -> int | None:
        """Counted from 1. Where a key was left out, that of its entry; None for what is not in the text at all."""
        while place and place not in self._lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        return self._lines.get(place)

    @cached_property
    def _lines(self) -> dict[str, int]:
        lines: dict[str, int] = {}
        for place, line in _places(self._text):
            lines.setdefault(place, line)
        return lines


@dataclass(slots=True)
class _Open:
    """A list or mapping that has not ended; `is_at_key`: what comes next is a key."""

    place: str
    is_mapping: bool
    is_at_key: bool = True
    number: int = 0
    key: str = ""

    def next_place(self, event: Any) -> str:
        """Of a key, and of its value, or of the next one of a list."""
        if not self.is_mapping:
            self.number += 1
            return f"{self.place}[{self.number - 1}]"
        if self.is_at_key:
            # An alias has none: its entry's line is near enough.
            name = getattr(event, "value", "")
            self.key = f"{self.place}.{name}" if self.place else name
        self.is_at_key = not self.is_at_key
        return self.key


def _places(text: str) -> Iterator[tuple[str, int]]:
    stack: list[_Open] = []
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        match event:
            case yaml.NodeEvent():
                place = stack[-1].next_place(event) if stack else ""
                if 0 < len(stack) <= _DEPTH and event.start_mark:
                    yield place, event.start_mark.line + 1
                if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                    stack.append(_Open(place, isinstance(event, yaml.MappingStartEvent)))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                stack.pop()
