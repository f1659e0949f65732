"""How long something that keeps failing stands still before it is tried again."""

from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock

FIRST_S: Final = 1.0
LONGEST_S: Final = 30.0
STEADY_AFTER_S: Final = 60.0


class BackOff:
    """Longer with each failure, and short again after one that came late. For one thread."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._next_s = FIRST_S
        self._began_at = self._due_at = clock.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether it may be tried now."""
        return self._clock.monotonic() >= self._due_at

    def begin(self) -> None:
        """It is tried now."""
        self._began_at = self._clock.monotonic()

    def forgive(self) -> None:
        """What made it fail has changed: it may be tried now."""
        self._next_s, self._due_at = FIRST_S, self._clock.monotonic()

    def failed(self) -> float:
        """How many seconds it stands still from now on."""
        now = self._clock.monotonic()
        pause_s = FIRST_S if now - self._began_at >= STEADY_AFTER_S else self._next_s
        self._next_s = min(LONGEST_S, pause_s * 2)
        self._due_at = now + pause_s
        return pause_s
