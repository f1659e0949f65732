"""The contract every provider keeps: producer, consumer, reader, admin.

Offsets count records within a provider partition and never repeat. A provider object belongs to the
process that opened it: nothing is inherited across a fork.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from queuecore.errors import ConfigurationError, QueueError
from queuecore.messages import QueueMessage, Record, RecordMetadata
from queuecore.topics import ProviderPartition, TopicPartitionInfo

SendCallback = Callable[[RecordMetadata | None, QueueError | None], None]

DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """What a topic is created with."""

    name: str
    partitions: int = 1
    retention_ms: int = 7 * DAY_MS

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ConfigurationError(f"topic {self.name!r} needs at least 1 partition, not {self.partitions}")


class QueueProducer(Protocol):
    def send(self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> None:
        """Store one message. Waits only while the producer's buffer is full, and raises ProviderUnavailable when
        it stays full or the producer has been stopped. Otherwise the callback runs exactly once, on a thread of
        the producer's, with the metadata or the error."""

    def flush(self, timeout_s: float) -> bool:
        """True when every send so far has had its callback within the time."""

    def stop(self) -> None:
        """Flush and release. Later sends are refused."""


class QueueConsumer(Protocol):
    """One group's reading of some partitions. To be used by one thread."""

    def subscribe(self, partitions: Iterable[TopicPartitionInfo]) -> None:
        """Start at each partition's committed offset, or at its beginning. All consumers of a group ask for the same
        partitions, and each partition is read by one of them at a time. UnknownTopic where there is none."""

    def poll(self, duration_ms: int) -> list[Record]:
        """Up to a pack of records, waiting at most that long for the first. Each is given out once."""

    def commit(self, offsets: Mapping[ProviderPartition, int]) -> None:
        """Everything below these offsets is done and will not be delivered to the group again. NotOwner, with
        nothing committed, when another consumer of the group holds one of the partitions."""

    def keep_alive(self) -> None:
        """Say that the consumer still works, without taking records: for a pack that takes long."""

    def stop(self) -> None:
        """Release the partitions. Commits nothing."""


class QueueReader(Protocol):
    """Reading without a group."""

    def read(self, partition: ProviderPartition, offset: int, max_records: int) -> list[Record]:
        """Records from `offset` on; empty at the end. OffsetOutOfRange below the beginning, UnknownTopic where
        there is no such partition."""

    def close(self) -> None: ...


class QueueAdmin(Protocol):
    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Create what does not exist yet; what exists stays as it is."""

    def topics(self) -> Mapping[str, TopicSpec]: ...

    def beginning_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]: ...

    def end_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        """The offset the next record will get, for each."""

    def committed_offsets(
        self, groups: Mapping[str, Iterable[ProviderPartition]]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        """Per group, what it committed; a partition it never committed is absent."""


class Provider(Protocol):
    def producer(self) -> QueueProducer: ...

    def consumer(self, group: str) -> QueueConsumer: ...

    def reader(self) -> QueueReader: ...

    def admin(self) -> QueueAdmin: ...

    def close(self) -> None: ...
