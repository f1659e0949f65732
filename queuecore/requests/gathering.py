"""Reading fewer times, and more at a time, while there is much to read."""

from dataclasses import dataclass
from typing import Final

from queuecore.clock import Clock

# Who gets so many at once is not waiting for a single one.
_MANY: Final = 16
_PAUSE_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Gathering:
    """A reader that is woken by the first of many takes the interpreter from who makes the others, and gives it back
    after a handful: each such turn costs more than the handful. One that pauses for a moment finds hundreds. Where they
    come singly nobody waits for anything."""

    clock: Clock

    def pause_after(self, records: int) -> None:
        if records >= _MANY:
            self.clock.sleep(_PAUSE_S)
