"""How often what happened."""

import threading
from dataclasses import dataclass, fields
from typing import Literal

# What a message that is done may have become.
Outcome = Literal["handled", "dead_lettered", "skipped", "dropped"]


@dataclass(frozen=True, slots=True)
class SubscriptionCounts:
    """What became of the messages a subscription got.

    handled        the handler returned, and what it sent is stored
    retried        attempts after a failed one
    dead_lettered  given up, and now in the queue's dead-letter topic
    skipped        replays for another group, passed over
    dropped        given up, and written nowhere but to the log: only with `at_most_once`
    """

    handled: int = 0
    retried: int = 0
    dead_lettered: int = 0
    skipped: int = 0
    dropped: int = 0


class Counter:
    """Counts up. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = {field.name: 0 for field in fields(SubscriptionCounts)}

    def add(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                self._counts[name] += number

    def counts(self) -> SubscriptionCounts:
        with self._lock:
            return SubscriptionCounts(**self._counts)
