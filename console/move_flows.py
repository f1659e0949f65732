"""Moves of partitions, drawn: who gives at the left, who gets at the right; the wider a line, the more move."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from queuecore.cluster.services import Move

MOST_PAIRS: Final = 40
_ROW: Final = 30
_TOP: Final = 16
_LEFT: Final = 200
_RIGHT: Final = 480
_WIDEST: Final = 14.0
_LEAST: Final = 1.5


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


def draw_moves(moves: Sequence[Move]) -> MoveFlow | None:
    """None where nothing moves."""
    counted = Counter((move.source, move.target) for move in moves)
    if not counted:
        return None
    shown = counted.most_common(MOST_PAIRS)
    gave, got = Counter[str](), Counter[str]()
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
        left_out=len(moves) - sum(count for _, count in shown),
    )


def _places(counts: "Counter[str]", verb: str) -> dict[str, Place]:
    """By name, from the top down."""
    return {
        name: Place(name, f"{_cut(name)} {verb} {counts[name]:,}", _TOP + index * _ROW)
        for index, name in enumerate(sorted(counts))
    }


def _line(begin: int, end: int, source: str, target: str, count: int, most: int) -> Line:
    middle = (_LEFT + _RIGHT) // 2
    path = f"M{_LEFT} {begin}C{middle} {begin} {middle} {end} {_RIGHT} {end}"
    width = max(_LEAST, _WIDEST * count / most)
    partitions = "1 partition moves" if count == 1 else f"{count:,} partitions move"
    return Line(path, f"{width:.1f}", f"{partitions} from {source} to {target}")


def _cut(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}\N{HORIZONTAL ELLIPSIS}"
