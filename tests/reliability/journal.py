"""What a process was given to handle, as it noted it: the notes outlive it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Begun(NamedTuple):
    """A handler was given a message at this time, as this machine's clock has it."""

    at: float
    partition: str
    data: str


class Journal:
    """One line for each, in three parts. Read while it is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0
        self._begun: list[Begun] = []

    @property
    def begun(self) -> list[Begun]:
        """All so far, in this order."""
        self._begun += self._read()
        return self._begun

    def _read(self) -> Iterator[Begun]:
        """What has come since the last time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as journal:
            journal.seek(self._read_to)
            whole, end, _ = journal.read().rpartition(b"\n")
        self._read_to += len(whole) + len(end)
        for line in whole.decode().splitlines():
            at, partition, data = line.split(" ", 2)
            yield Begun(float(at), partition, data)
