"""Which partition a record comes from."""

from queuecore.messages import Record
from queuecore.topics import ProviderPartition


def place_of(record: Record) -> ProviderPartition:
    return ProviderPartition(record.topic, record.partition)


def are_together(one: Record, other: Record) -> bool:
    """Whether they are of the same partition."""
    # Those that were stored or read together share their source, and need not be asked.
    return one[4] is other[4] or (one.partition == other.partition and one.topic == other.topic)
