"""Topics, offsets and groups."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from queuecore.errors import ConfigurationError, OffsetOutOfRange
from queuecore.groups.offsets import check_end, check_offsets
from queuecore.providers.base import GroupDescription, PartitionDescription, TopicDescription, TopicSpec, with_one_copy
from queuecore.providers.memory.group import MemoryGroup
from queuecore.providers.memory.partition import MemoryPartition
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.topics import ProviderPartition, check_topic


class MemoryAdmin:
    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        wanted = [with_one_copy(spec) for spec in specs]
        for spec in wanted:
            check_topic(spec.name)
        with self._storage.lock:
            for spec in wanted:
                if spec.name not in self._storage.topics:
                    self._storage.put_topic(spec)

    def alter_topics(self, specs: Iterable[TopicSpec]) -> None:
        wanted = [with_one_copy(spec) for spec in specs]
        with self._storage.lock:
            for spec in wanted:
                there = len(self._storage.partitions_of(spec.name))
                if spec.partitions < there:
                    raise ConfigurationError(
                        f"topic {spec.name} has {there} partitions and cannot have {spec.partitions}; keep them, or "
                        "delete the topic"
                    )
            for spec in wanted:
                self._storage.put_topic(spec)

    def delete_topics(self, names: Iterable[str]) -> None:
        with self._storage.lock:
            for name in names:
                self._storage.remove_topic(name)

    def topics(self) -> Mapping[str, TopicSpec]:
        with self._storage.lock:
            return dict(self._storage.topics)

    def topic_names(self, behind: str = "", limit: int | None = None) -> list[str]:
        with self._storage.lock:
            names = sorted(name for name in self._storage.topics if name > behind)
        return names[:limit]

    def describe_topics(self, names: Iterable[str]) -> Mapping[str, TopicDescription]:
        with self._storage.lock:
            return {name: self._describe(name) for name in names}

    def delete_records(self, offsets: Mapping[ProviderPartition, int]) -> Mapping[ProviderPartition, int]:
        with self._storage.lock:
            for place, offset in offsets.items():
                if offset > (end := self._partition(place).end):
                    raise OffsetOutOfRange(f"{place} ends at {end}; it has nothing up to {offset}", end=end)
            for place, offset in offsets.items():
                self._partition(place).trim(offset)
            self._storage.space_may_be_free()
            return {place: self._partition(place).beginning for place in offsets}

    def beginning_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        return self._ask(partitions, lambda partition: partition.beginning)

    def end_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        return self._ask(partitions, lambda partition: partition.end)

    def offsets_for_times(self, times_ms: Mapping[ProviderPartition, int]) -> Mapping[ProviderPartition, int]:
        return self._ask(times_ms, lambda partition: partition.first_at(times_ms[partition.place]))

    def committed_offsets(
        self, groups: Mapping[str, Iterable[ProviderPartition] | None]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        return self._ask_groups(groups, lambda group: group.committed)

    def committed_epochs(
        self, groups: Mapping[str, Iterable[ProviderPartition]]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        return self._ask_groups(groups, lambda group: group.epochs)

    def alter_group_offsets(self, group: str, offsets: Mapping[ProviderPartition, int]) -> None:
        with self._storage.lock:
            check_offsets(offsets)
            for place, offset in offsets.items():
                check_end(place, offset, self._storage.partition(place).end)
            there = self._storage.group(group)
            there.check_nobody_owns(offsets)
            there.committed.update(offsets)
            self._storage.space_may_be_free()

    def delete_group_offsets(self, group: str, partitions: Iterable[ProviderPartition]) -> None:
        places = list(partitions)
        with self._storage.lock:
            there = self._storage.group(group)
            there.check_nobody_owns(places)
            there.forget(places)
            self._storage.space_may_be_free()

    def groups(self, behind: str = "", limit: int | None = None) -> Mapping[str, GroupDescription]:
        with self._storage.lock:
            every = (self._storage.group(name) for name in sorted(self._storage.groups) if name > behind)
            known = (group for group in every if group.state.members or group.committed)
            return {group.name: group.state.describe(group.name) for group in islice(known, limit)}

    def _describe(self, name: str) -> TopicDescription:
        partitions = (self._partition(partition.place) for partition in self._storage.partitions_of(name))
        described = (PartitionDescription(one.place, one.beginning, one.end, one.size_bytes) for one in partitions)
        return TopicDescription(self._storage.topics[name], tuple(described))

    def _ask(
        self, places: Iterable[ProviderPartition], question: Callable[[MemoryPartition], int]
    ) -> Mapping[ProviderPartition, int]:
        with self._storage.lock:
            return {place: question(self._partition(place)) for place in places}

    def _ask_groups(
        self,
        groups: Mapping[str, Iterable[ProviderPartition] | None],
        question: Callable[[MemoryGroup], Mapping[ProviderPartition, int]],
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        with self._storage.lock:
            known = {name: question(group) for name, group in self._storage.groups.items()}
            return {name: _chosen(wanted, known.get(name, {})) for name, wanted in groups.items()}

    def _partition(self, place: ProviderPartition) -> MemoryPartition:
        """Without what is too old to be seen."""
        partition = self._storage.partition(place)
        partition.apply_retention(self._storage.clock.now_ms())
        return partition


def _chosen(
    wanted: Iterable[ProviderPartition] | None, known: Mapping[ProviderPartition, int]
) -> dict[ProviderPartition, int]:
    return {place: known[place] for place in (known if wanted is None else wanted) if place in known}
