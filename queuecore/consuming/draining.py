"""How far a group is, seen from outside it."""

from collections.abc import Iterable, Mapping
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
        """Whether the group has committed everything."""
        return not self.behind()

    def behind(self) -> frozenset[ProviderPartition]:
        """Where the group has not. Partitions that are done are not looked at again."""
        if self._ends:
            self._look()
        return frozenset(self._ends)

    def _look(self) -> None:
        committed = self._admin.committed_offsets({self._group: self._ends})[self._group]
        behind = {place: end for place, end in self._ends.items() if committed.get(place, 0) < end}
        if behind:
            behind = self._readable(behind, committed)
        self._ends = behind

    def _readable(
        self, behind: dict[ProviderPartition, int], committed: Mapping[ProviderPartition, int]
    ) -> dict[ProviderPartition, int]:
        """Offsets are missing after compaction and aborted transactions: only a record that can be read counts."""
        beginnings = self._admin.beginning_offsets(behind)
        readable = {}
        with closing(self._provider.reader()) as reader:
            for place, end in behind.items():
                following = reader.read(place, max(committed.get(place, 0), beginnings[place]), 1)
                if following and following[0].offset < end:
                    readable[place] = end
        return readable
