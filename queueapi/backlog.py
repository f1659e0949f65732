"""How many messages of a queue are still to be consumed, asked at the provider."""

import time
from collections import defaultdict
from collections.abc import Collection
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

_known: dict[UUID, tuple[float, int]] = {}


def messages_left(queue: Queue, partitions: Collection[int] | None = None) -> int:
    """Those that no consumer has committed. 0 is exact, however transactions have ended; a larger number counts what
    they have left behind as well. Topics that are not there have none. Of these partitions, or of all.
    ProviderUnavailable, and other QueueErrors."""
    infos = queue.partition_infos()
    places = [info.place for info in infos if partitions is None or info.partition in partitions]
    standings = read_standings(runtime.provider().admin(), dict.fromkeys(all_groups(queue), places))
    begin: defaultdict[ProviderPartition, int] = defaultdict(int)
    ends: dict[ProviderPartition, int] = {}
    for group in standings.values():
        for place, standing in group.items():
            begin[place] = max(begin[place], standing.beginning, standing.committed or 0)
            ends[place] = max(ends.get(place, 0), standing.end)
    behind = {place: begin[place] for place, end in ends.items() if begin[place] < end}
    if not behind:
        return 0
    with closing(runtime.provider().reader()) as reader:
        return sum(ends[place] - at for place, at in behind.items() if not _is_read(reader, place, at, ends[place]))


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


def _is_read(reader: QueueReader, place: ProviderPartition, offset: int, end: int) -> bool:
    """Whether nothing is behind that offset but what transactions have left."""
    return not reader.read(place, offset, 1) and reader.position(place) >= end
