"""Moves of partitions, drawn: who gives at the left, who gets at the right; the wider a line, the more move. What
nobody has yet comes from the left as well."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from queuecore.cluster.services import Move

MOST_PAIRS: Final = 40
_ROW: Final = 30
_TOP: Final = 16
_LEFT: Final = 200
_RIGHT: Final = 480
_WIDEST: Final = 14.0
_LEAST: Final = 1.5
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    text: str
    y: int


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    width: str
    told: str


@dataclass(frozen=True, slots=True)
class MoveFlow:
    """In pixels. Of more pairs than are drawn, those with most moves are; `left_out` moves are of the others."""

    height: int
    sources: list[Place]
    targets: list[Place]
    lines: list[Line]
    left_out: int


def draw_moves(moves: Sequence[Move], placed: Mapping[str, int] = _NONE) -> MoveFlow | None:
    """`placed` is how many partitions that nobody has each service gets. None where nothing moves."""
    counted = Counter[tuple[str | None, str]]((move.source, move.target) for move in moves)
    counted.update({(None, target): count for target, count in placed.items()})
    if not counted:
        return None
    shown = counted.most_common(MOST_PAIRS)
    gave, got = Counter[str | None](), Counter[str | None]()
    for (source, target), count in shown:
        gave[source] += count
        got[target] += count
    sources, targets = _places(gave, "gives"), _places(got, "gets")
    most = max(count for _, count in shown)
    lines = [
        _line(sources[source].y, targets[target].y, source, target, count, most) for (source, target), count in shown
    ]
    return MoveFlow(
        height=_TOP + max(len(sources), len(targets)) * _ROW,
        sources=list(sources.values()),
        targets=list(targets.values()),
        lines=lines,
        left_out=counted.total() - sum(count for _, count in shown),
    )


def _places(counts: "Counter[str | None]", verb: str) -> dict[str | None, Place]:
    """By name, from the top down; what is nobody's first."""
    return {
        name: _place(name, verb, counts[name], _TOP + index * _ROW)
        for index, name in enumerate(sorted(counts, key=lambda name: name or ""))
    }


def _place(name: str | None, verb: str, count: int, y: int) -> Place:
    if name is None:
        return Place("nobody's", f"nobody's: {count:,}", y)
    return Place(name, f"{_cut(name)} {verb} {count:,}", y)


def _line(begin: int, end: int, source: str | None, target: str, count: int, most: int) -> Line:
    middle = (_LEFT + _RIGHT) // 2
    path = f"M{_LEFT} {begin}C{middle} {begin} {middle} {end} {_RIGHT} {end}"
    width = max(_LEAST, _WIDEST * count / most)
    return Line(path, f"{width:.1f}", _told(source, target, count))


def _told(source: str | None, target: str, count: int) -> str:
    partitions = "1 partition" if count == 1 else f"{count:,} partitions"
    if source is None:
        return f"{partitions} that nobody has {'goes' if count == 1 else 'go'} to {target}"
    return f"{partitions} {'moves' if count == 1 else 'move'} from {source} to {target}"


def _cut(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}\N{HORIZONTAL ELLIPSIS}"
