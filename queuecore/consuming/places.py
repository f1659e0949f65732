"""Which partition a record comes from."""

from collections.abc import Iterable

from queuecore.messages import Record
from queuecore.topics import ProviderPartition


def place_of(record: Record) -> ProviderPartition:
    return ProviderPartition(record.topic, record.partition)


def are_together(one: Record, other: Record) -> bool:
    """Whether they are of the same partition."""
    # Those that were stored or read together share their source, and need not be asked.
    return one[4] is other[4] or (one.partition == other.partition and one.topic == other.topic)


def by_place(records: list[Record]) -> Iterable[tuple[ProviderPartition, list[Record]]]:
    """Runs of one partition's."""
    start = 0
    for index in range(1, len(records) + 1):
        if index == len(records) or not are_together(records[index - 1], records[index]):
            yield place_of(records[start]), records[start:index]
            start = index
