"""When a message is given up: whether it becomes a dead letter, and how many a partition may have."""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from queuecore.errors import ConfigurationError
from queuecore.topics import ProviderPartition, check_topic, payload_partition

# What is older than the window is forgotten in so many parts of it.
_SLOTS: Final = 60


class OnLimit(StrEnum):
    """What happens to a partition with too many dead letters.

    pause_partition  it stands still, with nothing lost, until somebody resumes it
    halt             its queue is consumed no further
    drop             what exceeds the limit is counted and logged, and written nowhere; it does not use up the limit
    """

    PAUSE_PARTITION = "pause_partition"
    HALT = "halt"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """The policy.

    enabled    whether messages that are given up are written to the dead-letter topic; else they are counted and logged
    topic      that topic; empty: the queue's own with `.dlq`
    partitions how many it has, where the queue's are numbered otherwise; 0: a letter's is that of its message
    max_ratio  how many of a partition's messages in the window may be given up, from 0 to 1; 1: all
    max_count  how many may be given up in the window; 0: any number
    min_total  so many messages must have been finished in the window before the ratio says anything
    window_s   how far back is counted, or a sixtieth farther
    on_limit   what happens beyond
    """

    enabled: bool = True
    topic: str = ""
    partitions: int = 0
    max_ratio: float = 1.0
    max_count: int = 0
    min_total: int = 100
    window_s: float = 60.0
    on_limit: OnLimit = OnLimit.PAUSE_PARTITION

    def __post_init__(self) -> None:
        if not 0 < self.max_ratio <= 1:
            raise ConfigurationError(f"max_ratio is {self.max_ratio:g}; use more than 0, and at most 1 for no limit")
        if self.max_count < 0 or self.min_total < 1 or not self.window_s > 0:
            raise ConfigurationError(
                f"max_count is {self.max_count}, min_total {self.min_total}, window_s {self.window_s:g}; "
                "use max_count from 0 on, min_total from 1 on and a window longer than 0 s"
            )
        if self.partitions < 0:
            raise ConfigurationError(f"partitions is {self.partitions}; use 0 for those of the queue, or more")
        if self.topic:
            check_topic(payload_partition(ProviderPartition(self.topic, 0)).full_topic_name)

    @property
    def may_stand_still(self) -> bool:
        """Whether a message that is given up may turn out to be one too many, and is then open again."""
        return (self.max_count > 0 or self.max_ratio < 1) and self.on_limit is not OnLimit.DROP

    def state(self) -> "LimitState":
        return LimitState(self)


@dataclass(slots=True)
class LimitState:
    """One partition under the policy. For one thread. Times are seconds of a clock that never goes back."""

    policy: DeadLetterPolicy
    # (number of the slot, messages done, messages given up), the oldest first: one for each part of the window that
    # something was finished in.
    _slots: deque[list[int]] = field(default_factory=deque, init=False)
    _done: int = field(default=0, init=False)
    _given_up: int = field(default=0, init=False)

    def finish(self, done: int, given_up: int, now_s: float) -> None:
        """Count messages that are finished: those that were given up within the limit, and all others."""
        slot = self._slot(now_s)
        if not self._slots or self._slots[-1][0] != slot:
            self._slots.append([slot, 0, 0])
            self._forget_before(slot - _SLOTS)
        self._slots[-1][1] += done
        self._slots[-1][2] += given_up
        self._done += done
        self._given_up += given_up

    def allows_another(self, now_s: float) -> bool:
        """Whether one more message may be given up now."""
        self._forget_before(self._slot(now_s) - _SLOTS)
        policy = self.policy
        finished = self._done + self._given_up
        given_up = self._given_up + 1
        if policy.max_count and given_up > policy.max_count:
            return False
        # A division is exact where a product would not be: 0.29 * 100 is less than 29.
        return finished < policy.min_total or given_up / (finished + 1) <= policy.max_ratio

    def _slot(self, now_s: float) -> int:
        return int(now_s * _SLOTS / self.policy.window_s)

    def _forget_before(self, slot: int) -> None:
        while self._slots and self._slots[0][0] < slot:
            _, done, given_up = self._slots.popleft()
            self._done -= done
            self._given_up -= given_up
