"""How far a group is, seen from outside it."""

from collections.abc import Iterable
from contextlib import closing

from queuecore.providers.base import Provider
from queuecore.topics import ProviderPartition


class Backlog:
    """What is in these partitions now, as far as a group has not committed it. For one thread."""

    def __init__(self, provider: Provider, group: str, places: Iterable[ProviderPartition]) -> None:
        self._provider = provider
        self._group = group
        self._admin = provider.admin()
        self._ends = dict(self._admin.end_offsets(places))

    def is_done(self) -> bool:
        """Whether the group has committed everything. Partitions that are done are not looked at again."""
        committed = self._admin.committed_offsets({self._group: self._ends})[self._group]
        behind = {place: end for place, end in self._ends.items() if committed.get(place, 0) < end}
        beginnings = self._admin.beginning_offsets(behind)
        with closing(self._provider.reader()) as reader:
            for place, end in behind.items():
                # Offsets are missing after compaction and aborted transactions: only a record that can be read counts.
                following = reader.read(place, max(committed.get(place, 0), beginnings[place]), 1)
                if not following or following[0].offset >= end:
                    behind = {other: at for other, at in behind.items() if other != place}
        self._ends = behind
        return not behind
