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


def ends_of(records: Iterable[Record]) -> dict[ProviderPartition, int]:
    """The offset behind the last of each partition."""
    ends: dict[ProviderPartition, int] = {}
    # The last of each source will do.
    for record in {id(record[4]): record for record in records}.values():
        place = place_of(record)
        ends[place] = max(ends.get(place, 0), record.offset + 1)
    return ends
