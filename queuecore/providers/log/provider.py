"""The `log` provider as a whole."""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path

from queuecore.errors import ProviderUnavailable
from queuecore.messages import Record
from queuecore.providers.base import TopicSpec
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.consumer import LogConsumer
from queuecore.providers.log.producer import Acks, LogProducer
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition, check_topic


class LogReader:
    """Reads any partition without a group; keeps its files open. For one thread."""

    def __init__(self, root: Path, catalog: Catalog) -> None:
        self._root = root
        self._catalog = catalog
        self._readers: dict[ProviderPartition, PartitionReader] = {}

    def read(self, partition: ProviderPartition, offset: int, max_records: int) -> list[Record]:
        if partition not in self._readers:
            self._catalog.topic_of(partition)
            self._readers[partition] = PartitionReader(self._root, partition)
        return self._readers[partition].read(offset, max_records)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()


class LogAdmin:
    """Safe from any thread."""

    def __init__(self, root: Path, catalog: Catalog) -> None:
        self._root = root
        self._catalog = catalog

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Make each topic's partitions readable before its name is known. One that exists is mended: what a power
        cut left stored but unpublished is there again."""
        known = self._catalog.topics()
        specs = [known.get(check_topic(spec.name), spec) for spec in specs]
        for spec in specs:
            for number in range(spec.partitions):
                self._recover(ProviderPartition(spec.name, number))
        self._catalog.create_topics(specs)

    def topics(self) -> Mapping[str, TopicSpec]:
        return self._catalog.topics()

    def beginning_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        return {place: self._ask(place, PartitionReader.beginning) for place in partitions}

    def end_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        return {place: self._ask(place, PartitionReader.end) for place in partitions}

    def committed_offsets(
        self, groups: Mapping[str, Iterable[ProviderPartition]]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        answer = {}
        for group, wanted in groups.items():
            committed = self._catalog.committed(group)
            answer[group] = {place: committed[place] for place in wanted if place in committed}
        return answer

    def _recover(self, place: ProviderPartition) -> None:
        try:
            with closing(PartitionWriter(self._root, place)) as writer:
                writer.recover()
        except OSError as error:
            raise ProviderUnavailable(f"cannot create {place}: {error}; mend the folder, then try again") from error

    def _ask(self, place: ProviderPartition, question: Callable[[PartitionReader], int]) -> int:
        self._catalog.topic_of(place)
        with closing(PartitionReader(self._root, place)) as reader:
            return question(reader)


class LogProvider:
    """One installation's log under one folder. Open it after a fork, never before."""

    def __init__(self, root: Path, acks: Acks = "all") -> None:
        self._root = root
        self._acks: Acks = acks
        try:
            self._catalog = Catalog(root)
        except (OSError, sqlite3.Error) as error:
            raise ProviderUnavailable(f"cannot open the log under {root}: {error}; check the folder") from error
        self._lock = threading.Lock()
        self._producer: LogProducer | None = None

    def producer(self) -> LogProducer:
        """The process's one producer: whoever sends through it shares its batches."""
        with self._lock:
            if self._producer is None:
                self._producer = LogProducer(self._root, self._catalog.topic_of, self._acks)
            return self._producer

    def consumer(self, group: str) -> LogConsumer:
        return LogConsumer(self._root, self._catalog, group)

    def reader(self) -> LogReader:
        return LogReader(self._root, self._catalog)

    def admin(self) -> LogAdmin:
        return LogAdmin(self._root, self._catalog)

    def close(self) -> None:
        with self._lock:
            if self._producer is not None:
                self._producer.stop()
        self._catalog.close()
