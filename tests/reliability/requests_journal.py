"""What happens between those who ask and those who answer, written down by whoever does it: a journal for each life of
each of them, and one for what was done to them."""

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.reliability.journal import Journal

SUFFIX: Final = ".journal"


class Plan(StrEnum):
    """What a request has its handler do."""

    REPLY = "reply"
    # Raise an error that has a code, and one that has none.
    REFUSE = "refuse"
    BREAK = "break"
    # Answer with more than a message holds.
    BLOAT = "bloat"
    # Take longer than the request waits, and longer than the responder lets it.
    DAWDLE = "dawdle"
    HANG = "hang"


class What(StrEnum):
    """What happened."""

    STARTED = "started"
    # To who asks: a request is about to be sent; its callback ran; its caller gave it up, or was told how it ended.
    SENT = "sent"
    ENDED = "ended"
    CANCELLED = "cancelled"
    TOLD = "told"
    # Stopped in good order, with what its template has counted.
    STOPPED = "stopped"
    # To who answers: a handler began.
    BEGUN = "begun"
    # To either: a thread died of something.
    BROKEN = "broken"
    # What was done to them. Stopping is asked for, killing and suspending is about to be done.
    STOPPING = "stopping"
    KILLED = "killed"
    SUSPENDED = "suspended"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a journal.

    at       when, in seconds of CLOCK_MONOTONIC, which all processes share
    who      one life of who asks or answers, as `ask-1.2`
    asker    whose request it is: one life as well
    number   counts the requests of one life
    outcome  how it ended: `answer`, an error's code, or `request_failed/` and the code that the responder gave
    answer   what the answer says: whose request that is, and which
    """

    what: What
    at: float
    who: str
    asker: str = ""
    number: int = -1
    plan: str = ""
    timeout_ms: int = 0
    outcome: str = ""
    answer: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def request(self) -> str:
        return f"{self.asker}/{self.number}"

    def line(self) -> bytes:
        said = {name: value for name, unsaid in _UNSAID.items() if (value := getattr(self, name)) != unsaid}
        return f"{self.at!r} {self.who} {json.dumps(said)}\n".encode()

    @classmethod
    def of(cls, at: float, who: str, line: str) -> "Event":
        said = json.loads(line)
        return cls(What(said.pop("what")), at, who, **said)


_UNSAID: Final[Mapping[str, object]] = {
    "what": None,
    "asker": "",
    "number": -1,
    "plan": "",
    "timeout_ms": 0,
    "outcome": "",
    "answer": "",
    "counts": {},
}


class Notes:
    """What one writes. Safe from any thread: each line is one write to the end of the file. Who comes after `close` has
    nothing to say."""

    def __init__(self, folder: Path, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._file: int | None = os.open(folder / f"{name}{SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, what: What, who: str = "", **said: object) -> None:
        line = Event(what, time.monotonic(), who or self._name, **said).line()  # type: ignore[arg-type]
        with self._lock:
            if self._file is not None:
                os.write(self._file, line)

    def note_broken(self, broken: threading.ExceptHookArgs) -> None:
        """For `threading.excepthook`."""
        error = broken.exc_value
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self.note(What.BROKEN, outcome=f"{type(error).__name__}: {error}")

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None


class Journals:
    """All that are in a folder, read while they are written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journals: dict[Path, Journal] = {}
        self._known: dict[Path, list[Event]] = {}

    def events(self) -> list[Event]:
        """All so far, in order. What is only half written is left out."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            known = self._known.setdefault(path, [])
            lines = self._journals.setdefault(path, Journal(path)).begun
            known += [Event.of(*line) for line in lines[len(known) :]]
        return in_order(event for known in self._known.values() for event in known)


def in_order(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event.at)
