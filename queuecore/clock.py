"""Time behind a seam, so that tests never sleep."""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that never go backwards; for deadlines."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # As they are: a million calls a second would cost a frame each.
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


SYSTEM_CLOCK = SystemClock()
