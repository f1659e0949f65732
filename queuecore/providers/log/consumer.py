"""A group's reading: owns its partitions by kernel locks, so that a killed owner frees them at once."""

import fcntl
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import NotOwner, OffsetOutOfRange
from queuecore.messages import Record
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.reader import PartitionReader
from queuecore.topics import ProviderPartition, TopicPartitionInfo

logger = logging.getLogger(__name__)

MAX_POLL_RECORDS = 500
_LOOK_AGAIN_S = 0.02


class LogConsumer:
    """Reads the partitions it could lock; one that another consumer of the group holds is taken when freed."""

    def __init__(self, root: Path, catalog: Catalog, group: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._root = root
        self._catalog = catalog
        self._group = group
        self._clock = clock
        self._wanted: list[ProviderPartition] = []
        self._locks: dict[ProviderPartition, int] = {}
        self._readers: dict[ProviderPartition, PartitionReader] = {}
        self._positions: dict[ProviderPartition, int] = {}

    def subscribe(self, partitions: Iterable[TopicPartitionInfo]) -> None:
        self.stop()
        self._wanted = [info.place for info in partitions]
        for partition in self._wanted:
            self._catalog.topic_of(partition)

    def poll(self, duration_ms: int) -> list[Record]:
        deadline = self._clock.monotonic() + duration_ms / 1000
        while True:
            self._take_free_partitions()
            records = self._read()
            remaining = deadline - self._clock.monotonic()
            if records or remaining <= 0:
                return records
            self._clock.sleep(min(_LOOK_AGAIN_S, remaining))

    def commit(self, offsets: Mapping[ProviderPartition, int]) -> None:
        for partition in offsets:
            if partition not in self._locks:
                raise NotOwner(
                    f"group {self._group} does not hold {partition} here; another consumer will get its records",
                    group=self._group,
                )
        self._catalog.commit(self._group, offsets)

    def keep_alive(self) -> None:
        """Nothing to do: the kernel knows that the holder of its locks lives."""

    def stop(self) -> None:
        for reader in self._readers.values():
            reader.close()
        for descriptor in self._locks.values():
            os.close(descriptor)
        self._readers.clear()
        self._locks.clear()
        self._wanted = []

    def _read(self) -> list[Record]:
        records: list[Record] = []
        for partition, reader in list(self._readers.items()):
            room = MAX_POLL_RECORDS - len(records)
            if room <= 0:
                break
            records += self._read_partition(partition, reader, room)
            self._readers[partition] = self._readers.pop(partition)  # to the back: those not reached come first
        return records

    def _read_partition(self, partition: ProviderPartition, reader: PartitionReader, room: int) -> list[Record]:
        try:
            records = reader.read(self._positions[partition], room)
        except OffsetOutOfRange as error:
            logger.warning("%s; group %s goes on from there", error, self._group)
            self._positions[partition] = error.fields["beginning"]
            return []
        if records:
            self._positions[partition] = records[-1].offset + 1
        return records

    def _take_free_partitions(self) -> None:
        for partition in self._wanted:
            if partition not in self._locks and (descriptor := self._try_lock(partition)) is not None:
                self._locks[partition] = descriptor
                self._readers[partition] = PartitionReader(self._root, partition)
                self._positions[partition] = self._catalog.committed(self._group).get(partition, 0)

    def _try_lock(self, partition: ProviderPartition) -> int | None:
        folder = self._root / "owners" / self._group
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{partition.topic}-{partition.partition}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor
