"""What operators have paused."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holds:
    """What is not to be handled for now.

    queue       all of it
    tenants     the messages that name one of these tenants. They wait, and the others go on: until so many wait that
                the partition's bound on open messages is reached. Under SEQUENTIAL and BATCH, whose promise is about
                the whole partition, and where messages are settled in order, it waits with the first of them
    partitions  these of the queue's partitions
    """

    queue: bool = False
    tenants: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()

    def has(self, partition: int | None) -> bool:
        """Whether nothing of this partition is to be handled."""
        return self.queue or (partition or 0) in self.partitions


NO_HOLDS = Holds()
