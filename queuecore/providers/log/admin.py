"""Topics, offsets and groups of the log."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path

from queuecore.errors import OffsetOutOfRange, ProviderUnavailable
from queuecore.groups.offsets import check_end, check_offsets
from queuecore.providers.base import (
    Epochs,
    GroupDescription,
    PartitionDescription,
    TopicDescription,
    TopicSpec,
    with_one_copy,
)
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.cleaner import Cleaner
from queuecore.providers.log.files import partition_dir, segment_sizes
from queuecore.providers.log.groups import Groups
from queuecore.providers.log.membership import expire_killed
from queuecore.providers.log.page import PageView
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.removal import delete_topic, is_marked, sweep_topics, topics_locked
from queuecore.providers.log.times import offset_for_time
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition, check_topic

Offsets = Mapping[ProviderPartition, int]


class LogAdmin:
    def __init__(self, root: Path, catalog: Catalog, groups: Groups, cleaner: Cleaner) -> None:
        self._root = root
        self._catalog = catalog
        self._groups = groups
        self._cleaner = cleaner

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Also mends what an earlier crash left behind. The catalog names a topic only when its files are there."""
        specs = [with_one_copy(spec) for spec in specs]
        with topics_locked(self._root):
            for spec in specs:
                if is_marked(self._root, check_topic(spec.name)):
                    delete_topic(self._root, self._catalog, self._groups, spec.name)
            known = self._catalog.topics()
            specs = [known.get(spec.name, spec) for spec in specs]
            for spec in specs:
                self._recover(spec)
            self._catalog.create_topics([spec for spec in specs if spec.name not in known])
        for spec in specs:
            if spec.name not in known:
                self._groups.topic_changed(spec.name, spec.partitions)

    def alter_topics(self, specs: Iterable[TopicSpec]) -> None:
        specs = [with_one_copy(spec) for spec in specs]
        with topics_locked(self._root):
            for spec in specs:
                self._catalog.topic(spec.name)
                self._recover(spec)
            self._catalog.alter_topics(specs)
        for spec in specs:
            self._groups.topic_changed(spec.name, spec.partitions)

    def delete_topics(self, names: Iterable[str]) -> None:
        with topics_locked(self._root):
            known = self._catalog.topics()
            for name in names:
                if name in known:
                    delete_topic(self._root, self._catalog, self._groups, name)
        sweep_topics(self._root, self._catalog, self._groups)

    def topics(self) -> Mapping[str, TopicSpec]:
        return self._catalog.topics()

    def topic_names(self, behind: str = "", limit: int | None = None) -> list[str]:
        return self._catalog.topic_names(behind, limit)

    def describe_topics(self, names: Iterable[str]) -> Mapping[str, TopicDescription]:
        return {name: self._describe(spec) for name, spec in self._catalog.topics_named(names).items()}

    def delete_records(self, offsets: Offsets) -> Offsets:
        ends = self.end_offsets(offsets)
        for place, offset in offsets.items():
            if not 0 <= offset <= ends[place]:
                raise OffsetOutOfRange(f"{place} ends at offset {ends[place]}; nothing below {offset} can be removed")
        for place, offset in offsets.items():
            with closing(PartitionWriter(self._root, place)) as writer:
                writer.begin_at(offset)
        return self.beginning_offsets(offsets)

    def beginning_offsets(self, partitions: Iterable[ProviderPartition]) -> Offsets:
        return {place: self._ask(place, PartitionReader.beginning) for place in partitions}

    def end_offsets(self, partitions: Iterable[ProviderPartition]) -> Offsets:
        return {place: self._ask(place, PartitionReader.end) for place in partitions}

    def offsets_for_times(self, times_ms: Offsets) -> Offsets:
        def find(place: ProviderPartition, time_ms: int) -> int:
            return self._ask(place, lambda reader: offset_for_time(self._root, place, reader, time_ms))

        return {place: find(place, time_ms) for place, time_ms in times_ms.items()}

    def committed_offsets(self, groups: Mapping[str, Iterable[ProviderPartition] | None]) -> Mapping[str, Offsets]:
        return _chosen(groups, self._catalog.committed)

    def committed_epochs(self, groups: Mapping[str, Iterable[ProviderPartition]]) -> Mapping[str, Epochs]:
        return _chosen(groups, self._catalog.epochs)

    def alter_group_offsets(self, group: str, offsets: Offsets) -> None:
        check_offsets(offsets)
        for place, end in self.end_offsets(offsets).items():
            check_end(place, offsets[place], end)
        expire_killed(self._root, self._groups, group)
        self._groups.alter_offsets(group, offsets)

    def delete_group_offsets(self, group: str, partitions: Iterable[ProviderPartition]) -> None:
        expire_killed(self._root, self._groups, group)
        self._groups.delete_offsets(group, partitions)

    def groups(self, behind: str = "", limit: int | None = None) -> Mapping[str, GroupDescription]:
        """Without members that were killed. A group that had no others makes room for the next."""
        checked: set[str] = set()
        while True:
            found = self._groups.describe(behind, limit)
            unchecked = {name for name, described in found.items() if described.members} - checked
            if not unchecked:
                return found
            for name in unchecked:
                expire_killed(self._root, self._groups, name)
            checked |= unchecked

    def clean(self) -> None:
        """Remove and compact now what would be in the next minutes. Trouble with a partition is logged, not raised."""
        self._cleaner.clean()

    def _describe(self, spec: TopicSpec) -> TopicDescription:
        places = (ProviderPartition(spec.name, number) for number in range(spec.partitions))
        return TopicDescription(spec, tuple(map(self._describe_partition, places)))

    def _describe_partition(self, place: ProviderPartition) -> PartitionDescription:
        """By one look into its folder and one at its page, which is read and not mapped: a list of topics or of groups
        asks this of hundreds."""
        directory = partition_dir(self._root, place)
        # Before the page: a segment that is begun meanwhile is not behind the end.
        sizes = segment_sizes(directory)
        page = self._page(place, directory)
        beginning = max(page.beginning, min(sizes)) if sizes else page.end
        return PartitionDescription(place, beginning, page.end, sum(sizes.values()))

    def _page(self, place: ProviderPartition, directory: Path) -> PageView:
        """As it can be relied on. UnknownTopic where its topic is gone."""
        with suppress(OSError):
            page = PageView.read(directory)
            if not page.is_removed and page.notes() is not None:
                return page
        # Whoever opens it mends what can be mended, and tells what is wrong.
        self._ask(place, PartitionReader.end)
        return PageView.read(directory)

    def _recover(self, spec: TopicSpec) -> None:
        for number in range(spec.partitions):
            place = ProviderPartition(spec.name, number)
            try:
                with closing(PartitionWriter(self._root, place)) as writer:
                    writer.recover()
            except OSError as error:
                raise ProviderUnavailable(f"cannot create {place}: {error}; mend the folder, then try again") from error

    def _ask(self, place: ProviderPartition, question: Callable[[PartitionReader], int]) -> int:
        self._catalog.topic_of(place)
        with closing(PartitionReader(self._root, place)) as reader:
            return question(reader)


def _chosen(
    groups: Mapping[str, Iterable[ProviderPartition] | None], known: Callable[[str], Mapping[ProviderPartition, int]]
) -> dict[str, dict[ProviderPartition, int]]:
    answer = {}
    for group, wanted in groups.items():
        of_group = known(group)
        chosen = of_group if wanted is None else wanted
        answer[group] = {place: of_group[place] for place in chosen if place in of_group}
    return answer
