"""Time that passes only when told to."""

import threading


class ManualClock:
    """A Clock for tests: sleeping returns at once and moves the time on. Safe from any thread."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._lock = threading.Lock()
        self._start_ms = now_ms
        self._passed_s = 0.0

    def now_ms(self) -> int:
        with self._lock:
            return self._start_ms + round(self._passed_s * 1000)

    def monotonic(self) -> float:
        with self._lock:
            return self._passed_s

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} s")
        with self._lock:
            self._passed_s += seconds
