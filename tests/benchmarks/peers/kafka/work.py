"""What is done with every message, whoever reads it, and when it counts as done.

The clock runs from the first message that is handled until the brokers have the commit of the last one: joining a
group is not what is compared.
"""

import json
import sys
import time
from dataclasses import dataclass
from typing import Any, Self

# Ours commits ten times a second while it works; a peer that goes by messages, after so many: no more often.
COMMIT_EVERY = 8_192

_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Task:
    """What a process shall read, and how it fetches: what ours tells librdkafka."""

    servers: str
    topic: str
    group: str
    messages: int
    fetching: dict[str, Any]

    @classmethod
    def of_arguments(cls) -> Self:
        """Of the process's own: one, as JSON."""
        return cls(**json.loads(sys.argv[1]))


class Work:
    """A handler that adds up the numbers in the payloads."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self._started = 0.0
        self.count = self.total = 0

    def handle(self, data: bytes) -> None:
        if not self.count:
            self._started = time.perf_counter()
        self.count += 1
        self.total += int.from_bytes(data[:_NUMBER_BYTES], "big")

    @property
    def is_done(self) -> bool:
        return self.count >= self._messages

    def report(self) -> None:
        """To be called when the commit of the last message has been answered."""
        seconds = time.perf_counter() - self._started
        print(json.dumps({"count": self.count, "total": self.total, "seconds": seconds}), flush=True)
