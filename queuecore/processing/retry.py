"""RETRY_FAILED: a failed message is tried again, with growing pauses, and given up after its retries."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RetryFailed:
    """The policy. `retries` counts what follows the first attempt."""

    retries: int = 3
    pause_ms: int = 200
    max_pause_ms: int = 5_000

    def state(self) -> "RetryState":
        return RetryState(self)


@dataclass(slots=True)
class RetryState:
    """One message under the policy."""

    policy: RetryFailed
    failures: int = field(default=0, init=False)

    def pause_before_next_ms(self) -> int | None:
        """Count one failure; how long to wait before the next attempt, or None to give up."""
        self.failures += 1
        if self.failures > self.policy.retries:
            return None
        doubled: int = self.policy.pause_ms * 2 ** (self.failures - 1)
        return min(self.policy.max_pause_ms, doubled)
