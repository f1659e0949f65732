"""What whoever runs a consumption wants to hear of it."""

from collections.abc import Sequence
from typing import Protocol

from queuecore.consuming.work import Work
from queuecore.topics import TopicPartitionInfo


class Observer(Protocol):
    """Told by the thread that reads. What `settling` raises ends the stay in the group, with nothing committed."""

    def settling(self, works: Sequence[Work]) -> None:
        """These are done or given up, and about to be committed: what is stored here is never behind the commit. The
        same message may come again after a crash, and at once where the provider refuses what it sent: what is told
        last counts."""

    def partition_paused(self, info: TopicPartitionInfo, reason: str) -> None:
        """A partition stands still, as it had too many dead letters, until `Consumption.resume`."""

    def stalled(self, info: TopicPartitionInfo, reason: str) -> None:
        """A partition has messages, and has made no progress for long."""

    def recovered(self, info: TopicPartitionInfo) -> None:
        """A partition that was stalled makes progress again."""


class Unobserved:
    """Nobody wants to hear."""

    def settling(self, works: Sequence[Work]) -> None: ...

    def partition_paused(self, info: TopicPartitionInfo, reason: str) -> None: ...

    def stalled(self, info: TopicPartitionInfo, reason: str) -> None: ...

    def recovered(self, info: TopicPartitionInfo) -> None: ...
