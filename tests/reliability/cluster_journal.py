"""What happens in a cluster under test, written down by whoever does it: lines that outlive their writer."""

import itertools
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class What(StrEnum):
    """What happened."""

    # A host: it was given a partition, its lease was over and it knew, a handler began and ended with a message.
    GIVEN = "given"
    OVER = "over"
    BEGUN = "begun"
    ENDED = "ended"
    # A commit: it was begun, and accepted or refused. One that was only begun may have taken effect or not.
    COMMITTING = "committing"
    COMMITTED = "committed"
    REFUSED = "refused"
    # The producer: a message is stored.
    STORED = "stored"
    # Faults: one begins, or is over; a process stands still, and goes on.
    FAULT = "fault"
    PAUSED = "paused"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a journal.

    at      when, in seconds of CLOCK_MONOTONIC, which all processes share
    who     the service instance
    call    has the end of something find its beginning, within one process
    offset  of a message, or what a commit says is done below it
    number  counts the messages of an entity, from 0
    since   of GIVEN: when the consumer began to look at what it was given; what was committed before that, it knows
    """

    what: What
    at: float
    who: str = ""
    pid: int = 0
    place: str = ""
    epoch: int = 0
    offset: int = -1
    entity: str = ""
    number: int = -1
    call: int = 0
    since: float = 0.0
    why: str = ""

    def line(self) -> bytes:
        """On a line of its own, whatever is before it."""
        return b"\n" + json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, line: str) -> "Event":
        said = json.loads(line)
        return cls(What(said.pop("what")), **said)


class Journal:
    """One process's. Safe from any thread: each line is one write to the end of the file."""

    def __init__(self, path: Path, who: str = "") -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._who = who
        self._pid = os.getpid()
        self.calls = itertools.count(1)

    def note(self, what: What, pid: int | None = None, **said: float | int | str) -> None:
        said.setdefault("at", time.monotonic())
        said.setdefault("who", self._who)
        os.write(self._file, Event(what, pid=pid or self._pid, **said).line())  # type: ignore[arg-type]

    def close(self) -> None:
        os.close(self._file)


def read_journals(paths: Iterable[Path]) -> list[Event]:
    """All that happened, in order. What is only half written is left out."""
    lines = (line for path in paths for line in path.read_text().splitlines())
    return sorted((Event.of(line) for line in lines if line.endswith("}")), key=lambda event: event.at)
