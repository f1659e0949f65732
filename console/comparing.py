"""What was changed between two texts, line by line. They are anybody's: comparing takes a bounded time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Final, Literal

# As many lines that stayed are shown around those that changed.
_AROUND: Final = 3
_MOST_LINES: Final = 1_000
# Between the first and the last change. Of more, each counts as changed: to match them could take minutes.
_MOST_COMPARED: Final = 10_000

_Change = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Line:
    """Of a comparison: what is gone, what came, or what stayed."""

    kind: Literal["del", "ins", "same", "gap"]
    text: str


def compared_lines(before: Sequence[str], after: Sequence[str]) -> list[Line]:
    """What differs, with some of what stays around it; empty where nothing does."""
    start, end = _ends(before, after)
    first, then = (lines[start : len(lines) - end] for lines in (before, after))
    changes = [line for group in _groups(first, then) for line in _told(group, first, then, start)]
    more = len(changes) - _MOST_LINES
    return (
        [*changes[:_MOST_LINES], Line("gap", f"and {more:,} lines more, which are not shown")] if more > 0 else changes
    )


def _ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many lines need no look, at the beginning and at the end: they stayed, and nothing near them changed."""
    start = _alike(zip(before, after, strict=False))
    shorter = min(len(before), len(after))
    end = min(_alike(zip(reversed(before), reversed(after), strict=False)), shorter - start)
    return max(start - _AROUND, 0), max(end - _AROUND, 0)


def _alike(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _groups(first: Sequence[str], then: Sequence[str]) -> Iterable[Sequence[_Change]]:
    if max(len(first), len(then)) > _MOST_COMPARED:
        return [[("replace", 0, len(first), 0, len(then))]]
    return SequenceMatcher(None, first, then).get_grouped_opcodes(_AROUND)


def _told(group: Sequence[_Change], first: Sequence[str], then: Sequence[str], start: int) -> Iterator[Line]:
    (_, gone, _, come, _), (_, _, last_gone, _, last_come) = group[0], group[-1]
    yield Line(
        "gap", f"@@ {_place('-', start + gone, last_gone - gone)} {_place('+', start + come, last_come - come)} @@"
    )
    for kind, gone_from, gone_to, come_from, come_to in group:
        if kind == "equal":
            yield from (Line("same", text) for text in first[gone_from:gone_to])
        else:
            yield from (Line("del", text) for text in first[gone_from:gone_to])
            yield from (Line("ins", text) for text in then[come_from:come_to])


def _place(sign: str, start: int, lines: int) -> str:
    return f"{sign}{start + 1},{lines}"
