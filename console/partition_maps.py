"""Who owns what, drawn: a row for each queue, a column for each service instance, the darker the more."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from console.cluster_filters import NOBODY
from queueapi.choices import Tone
from queueapi.models import Queue
from queueapi.selectors.partition_map import OwnedCell, PartitionMap, QueueOwners

MOST_COLUMNS: Final = 120
ROW: Final = 26
# The longest name, and as much for each of its letters.
_LONGEST: Final = 36
_LETTER: Final = 7
_HEAD: Final = 96
_WIDTH: Final = 860
_LEAST: Final = 12
_WIDEST: Final = 64
# A number fits from here on.
_NUMBERED: Final = 22
_LEVELS: Final = 5
_NOBODY: Final = "nobody"
_OTHERS: Final = "others"


@dataclass(frozen=True, slots=True)
class Cell:
    x: float
    y: int
    text: str
    told: str
    url: str
    tone: str


@dataclass(frozen=True, slots=True)
class Label:
    x: float
    y: float
    text: str
    told: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class DrawnMap:
    """In pixels; `cell_width` is that of all cells. `left_out` instances are drawn as one."""

    width: float
    height: int
    cell_width: float
    columns: list[Label]
    rows: list[Label]
    cells: list[Cell]
    left_out: int

    @property
    def half(self) -> str:
        """Where a cell's number is."""
        return f"{self.cell_width / 2:.1f}"


def draw_map(seen: PartitionMap) -> DrawnMap:
    named, left_out = _columns(seen.owners)
    begin = 16 + _LETTER * max((len(_cut(row.queue.full_name, _LONGEST)) for row in seen.queues), default=0)
    each = max(_LEAST, min(_WIDEST, _WIDTH / max(len(named), 1)))
    places = {owner: begin + index * each for index, owner in enumerate(named)}
    cells = [cell for index, row in enumerate(seen.queues) for cell in _cells(row, places, _HEAD + index * ROW, each)]
    return DrawnMap(
        width=begin + len(named) * each + _HEAD,
        height=_HEAD + len(seen.queues) * ROW + 4,
        cell_width=each - 2,
        columns=[_column(owner, x, each) for owner, x in places.items()],
        rows=[_row(row, begin - 10, _HEAD + index * ROW) for index, row in enumerate(seen.queues)],
        cells=cells,
        left_out=left_out,
    )


def _columns(owners: Sequence[str | None]) -> tuple[list[str], int]:
    """Those that are drawn, and how many are drawn as one."""
    names = [_NOBODY if owner is None else owner for owner in owners]
    services = [name for name in names if name != _NOBODY]
    shown = services[:MOST_COLUMNS]
    left_out = len(services) - len(shown)
    return [*shown, *([_OTHERS] if left_out else []), *([_NOBODY] if _NOBODY in names else [])], left_out


def _cells(row: QueueOwners, places: dict[str, float], y: int, width: float) -> list[Cell]:
    shown: dict[str, OwnedCell] = {}
    for owner, cell in row.owners.items():
        name = _NOBODY if owner is None else owner
        found = shown.setdefault(name if name in places else _OTHERS, OwnedCell())
        found.partitions += cell.partitions
        found.moving += cell.moving
    most = max((cell.partitions for cell in shown.values()), default=1)
    return [_cell(row.queue, name, cell, most, places[name], y, width) for name, cell in shown.items()]


def _cell(queue: Queue, owner: str, cell: OwnedCell, most: int, x: float, y: int, width: float) -> Cell:
    """Its darkness is of the queue's own most: queues of three partitions are compared among themselves."""
    moving = f", {cell.moving} of them on their way to another" if cell.moving else ""
    told = f"{queue.full_name}: {owner} has {cell.partitions:,} of {queue.partitions:,} partitions{moving}"
    if owner == _NOBODY:
        tone = f"map-{Tone.BAD}"
    elif cell.moving:
        tone = f"map-{Tone.BUSY}"
    else:
        tone = f"map-{ceil(_LEVELS * cell.partitions / most)}"
    text = f"{cell.partitions:,}" if width >= _NUMBERED else ""
    return Cell(x, y, text, told, _list_of(owner, queue=queue.pk), tone)


def _column(owner: str, x: float, width: float) -> Label:
    url = "" if owner in (_NOBODY, _OTHERS) else _list_of(owner)
    return Label(x + width / 2 - 2, _HEAD - 8, _cut(owner, 16), owner, url)


def _list_of(owner: str, **asked: Any) -> str:
    """The same partitions, as a list. Those of several owners are not to be asked for."""
    whose = {} if owner == _OTHERS else {"owner": NOBODY if owner == _NOBODY else owner}
    return f"{reverse('partitions')}?{urlencode({**asked, **whose})}"


def _row(row: QueueOwners, x: int, y: int) -> Label:
    queue = row.queue
    told = f"{queue.full_name}: {row.partitions:,} of {queue.partitions:,} partitions"
    return Label(x, y + ROW / 2, _cut(queue.full_name, _LONGEST), told, reverse("queue", args=[queue.pk]))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
