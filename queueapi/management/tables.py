"""Aligned tables for commands that people read."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

Cell = str | int | None

_NUMBER = re.compile(r"[\d,]+|-")


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Columns of numbers are aligned to the right. What is not known is shown as `-`."""
    lines = [list(head), *([_text(cell) for cell in row] for row in rows)]
    columns = [_aligned(column) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def instant(milliseconds: int | None) -> str | None:
    """Milliseconds since the epoch, as UTC."""
    if milliseconds is None:
        return None
    try:
        return f"{datetime.fromtimestamp(milliseconds // 1000, UTC):%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}Z"
    except (OverflowError, ValueError, OSError):  # a time that a producer made up
        return f"{milliseconds} ms"


def count(number: int) -> str:
    return f"{number:,}"


def _text(cell: Cell) -> str:
    return "-" if cell is None else str(cell)


def _aligned(column: Sequence[str]) -> list[str]:
    width = max(map(len, column))
    is_numeric = all(_NUMBER.fullmatch(cell) for cell in column[1:])
    return [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in column]
