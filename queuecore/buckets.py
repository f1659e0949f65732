"""How much may pass: a steady rate, and a burst above it."""

import math


class TokenBucket:
    """Lets through `rate_per_s` in every second, and `capacity` at once after a quiet time: in any `t` seconds never
    more than `rate_per_s * t + capacity`.

    Whoever owns it tells the time, in seconds that never go backwards, and lets one thread at a time use it.
    """

    def __init__(self, rate_per_s: float, capacity: float, now_s: float) -> None:
        """Full. ValueError for a rate or a capacity that lets nothing through."""
        if rate_per_s <= 0 or capacity <= 0:
            raise ValueError(f"a bucket of {capacity} that gets {rate_per_s} each second lets nothing through")
        self._rate_per_s = rate_per_s
        self._capacity = capacity
        self._level = capacity
        self._filled_s = now_s

    def wait_s(self, amount: float, now_s: float) -> float:
        """How long until that much may pass: 0 for at once, infinity for more than it ever holds."""
        self._fill(now_s)
        if amount > self._capacity:
            return math.inf
        return max(0.0, (amount - self._level) / self._rate_per_s)

    def take(self, amount: float, now_s: float) -> bool:
        """Let that much pass, if it may now."""
        if self.wait_s(amount, now_s) > 0:
            return False
        self._level -= amount
        return True

    def change(self, rate_per_s: float, capacity: float, now_s: float) -> None:
        """Go on by another rate, with what there is: who has used up a burst does not get another one for it."""
        self._fill(now_s)
        self._rate_per_s, self._capacity = rate_per_s, capacity
        self._level = min(self._level, capacity)

    def _fill(self, now_s: float) -> None:
        gained = max(0.0, now_s - self._filled_s) * self._rate_per_s
        self._level = min(self._capacity, self._level + gained)
        self._filled_s = max(self._filled_s, now_s)
