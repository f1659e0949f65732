"""How many messages of a queue are still to be consumed, asked at the provider."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Final
from uuid import UUID

from queueapi import runtime
from queueapi.models import Queue
from queueapi.plans import all_groups
from queuecore.errors import QueueOverloaded
from queuecore.groups.lag import read_standings
from queuecore.providers.base import QueueReader
from queuecore.topics import ProviderPartition

# Counted so often for who publishes: a limit is kept to about a second's messages.
_KNOWN_FOR_S: Final = 1.0

_Offsets = Mapping[ProviderPartition, int]

_known: dict[UUID, tuple[float, int]] = {}


def messages_left(queue: Queue, partitions: Collection[int] | None = None) -> int:
    """Those that no consumer has committed. 0 is exact, however transactions have ended; a larger number counts what
    they have left behind as well. Topics that are not there have none. Of these partitions, or of all.
    ProviderUnavailable, and other QueueErrors."""
    infos = queue.partition_infos()
    places = [info.place for info in infos if partitions is None or info.partition in partitions]
    return _left(*_standing(queue, places))


def messages_before(queue: Queue, cut: Mapping[int, int]) -> int:
    """As `messages_left`, of those before these offsets of its partitions."""
    limits = {queue.partition_info(number).place: offset for number, offset in cut.items()}
    begin, ends = _standing(queue, limits)
    return _left(begin, {place: min(end, limits[place]) for place, end in ends.items()})


def end_offsets(queue: Queue) -> dict[int, int]:
    """Where each of its partitions ends now. ProviderUnavailable, UnknownTopic."""
    places = {info.place: info.partition or 0 for info in queue.partition_infos()}
    return {places[place]: end for place, end in runtime.provider().admin().end_offsets(places).items()}


def check_backlog(queue: Queue) -> None:
    """QueueOverloaded where as many messages wait as may."""
    if not queue.max_backlog:
        return
    now = time.monotonic()
    counted_at, left = _known.get(queue.pk, (float("-inf"), 0))
    if now - counted_at >= _KNOWN_FOR_S:
        left = messages_left(queue)
        _known[queue.pk] = (now, left)
    if left >= queue.max_backlog:
        raise QueueOverloaded(
            f"{left:,} messages wait in queue {queue.name}, and {queue.max_backlog:,} may; send it again when its "
            "consumers have caught up, or raise max_backlog",
            queue=str(queue.pk),
        )


def _standing(queue: Queue, places: Collection[ProviderPartition]) -> tuple[_Offsets, _Offsets]:
    """Up to where each has been done, and where it ends."""
    standings = read_standings(runtime.provider().admin(), dict.fromkeys(all_groups(queue), places))
    begin: defaultdict[ProviderPartition, int] = defaultdict(int)
    ends: dict[ProviderPartition, int] = {}
    for group in standings.values():
        for place, standing in group.items():
            begin[place] = max(begin[place], standing.beginning, standing.committed or 0)
            ends[place] = max(ends.get(place, 0), standing.end)
    return begin, ends


def _left(begin: _Offsets, ends: _Offsets) -> int:
    behind = {place: begin[place] for place, end in ends.items() if begin[place] < end}
    if not behind:
        return 0
    with closing(runtime.provider().reader()) as reader:
        return sum(ends[place] - at for place, at in behind.items() if not _is_read(reader, place, at, ends[place]))


def _is_read(reader: QueueReader, place: ProviderPartition, offset: int, end: int) -> bool:
    """Whether nothing is between these offsets but what transactions have left."""
    records = reader.read(place, offset, 1)
    return records[0].offset >= end if records else reader.position(place) >= end
