"""Sending no faster than allowed, and hardly slower."""

from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock

# So much of a second's letters go out at once: often enough to be even, seldom enough to cost little.
_PART_S: Final = 0.2
# Who fell behind by more does not hurry to catch up.
_PATIENCE_S: Final = 1.0


class Pace:
    """A timetable of a steady rate: what is late by a little is made up for, so that the rate is met on the whole."""

    def __init__(self, rate_per_s: float | None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._rate_per_s = rate_per_s
        self._clock = clock
        self._next_at = clock.monotonic()

    def portion(self, most: int) -> int:
        """How many to send at once."""
        return most if self._rate_per_s is None else min(most, max(1, round(self._rate_per_s * _PART_S)))

    def delay_s(self) -> float:
        """How long to wait before the next portion."""
        return max(0.0, self._next_at - self._clock.monotonic()) if self._rate_per_s else 0.0

    def sent(self, count: int) -> None:
        """So many have just been sent."""
        if self._rate_per_s:
            begun_at = max(self._next_at, self._clock.monotonic() - _PATIENCE_S)
            self._next_at = begun_at + count / self._rate_per_s
