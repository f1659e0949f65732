"""Which offsets a group may commit: those there are, and from one member only what it read as the partition's owner."""

from collections.abc import Mapping

from queuecore.errors import NotOwner, OffsetOutOfRange
from queuecore.topics import ProviderPartition


def check_offsets(offsets: Mapping[ProviderPartition, int]) -> None:
    """OffsetOutOfRange for what can be no offset of any partition."""
    for place, offset in offsets.items():
        if not isinstance(offset, int) or offset < 0:
            raise OffsetOutOfRange(f"cannot commit {offset!r} in {place}; offsets are whole numbers from 0 on")


def check_end(place: ProviderPartition, offset: int, end: int) -> None:
    """OffsetOutOfRange beyond the end: records that are yet to come would count as done."""
    if offset > end:
        raise OffsetOutOfRange(f"cannot commit {offset} in {place}, which ends at {end}", end=end)


def check_started(group: str, place: ProviderPartition, offset: int, start: int) -> None:
    """NotOwner below `start`, the lowest offset the member read from since it holds the partition: the work is from
    before that. Somebody else held the partition meanwhile and got further, and would be set back."""
    if offset < start:
        raise NotOwner(
            f"group {group} had done {place} up to {start} when it came to this consumer, and {offset} is work from "
            "before; to do it again, seek there first",
            group=group,
        )
