"""The `log` provider as a whole."""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable, UnknownTopic
from queuecore.groups.members import check_member_id
from queuecore.messages import Record
from queuecore.providers.base import Capabilities, DataColumn
from queuecore.providers.log.admin import LogAdmin
from queuecore.providers.log.bell import Bell
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.cleaner import Cleaner, CleaningThread
from queuecore.providers.log.consumer import LogConsumer
from queuecore.providers.log.database import Database
from queuecore.providers.log.groups import Groups
from queuecore.providers.log.membership import Membership
from queuecore.providers.log.outcomes import Outcomes, new_producer
from queuecore.providers.log.page import map_page
from queuecore.providers.log.producer import LogProducer, Sender
from queuecore.providers.log.reader import Outcome, PartitionReader, everything
from queuecore.providers.log.restart import recover_after_restart
from queuecore.providers.log.transactions import LogTransactionalProducer
from queuecore.providers.log.writers import Writers
from queuecore.providers.options import (
    DEFAULT_CONSUMING,
    DEFAULT_PRODUCING,
    ConsumerOptions,
    LogCompression,
    ProducerOptions,
    check_choices,
)
from queuecore.topics import ProviderPartition

Answer = TypeVar("Answer")


class LogReader:
    """Reads any partition without a group; keeps its files open. For one thread."""

    def __init__(self, root: Path, catalog: Catalog, outcome: Outcome) -> None:
        self._root = root
        self._catalog = catalog
        self._outcome = outcome
        self._readers: dict[ProviderPartition, PartitionReader] = {}
        self._positions: dict[ProviderPartition, int] = {}

    def read(self, partition: ProviderPartition, offset: int, max_records: int) -> list[Record]:
        records = self._ask(partition, lambda reader: reader.read(offset, max_records))
        # What begins at the end is not looked for.
        self._positions[partition] = max(offset, self._readers[partition].next_offset)
        return records

    def read_data(self, partition: ProviderPartition, offset: int) -> DataColumn | None:
        column = self._ask(partition, lambda reader: reader.read_data(offset))
        self._positions[partition] = max(offset, self._readers[partition].next_offset)
        return column

    def position(self, partition: ProviderPartition) -> int:
        return self._positions[partition]

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _ask(self, partition: ProviderPartition, question: Callable[[PartitionReader], Answer]) -> Answer:
        if partition in self._readers:
            try:
                return question(self._readers[partition])
            except UnknownTopic:  # deleted since we opened it, and perhaps created anew
                self._readers.pop(partition).close()
        self._catalog.topic_of(partition)
        self._readers[partition] = PartitionReader(self._root, partition, self._outcome)
        return question(self._readers[partition])


class LogProvider:
    """One installation's log under one folder. Open it after a fork, never before."""

    capabilities = Capabilities(durable=True, transactions=True, compaction=True, group_strategies=True)

    def __init__(
        self,
        root: Path,
        producing: ProducerOptions = DEFAULT_PRODUCING,
        consuming: ConsumerOptions = DEFAULT_CONSUMING,
        clock: Clock = SYSTEM_CLOCK,
        clean_every_s: float = 60.0,
    ) -> None:
        """A process that produces also cleans, every so many seconds, unless another one is doing that."""
        check_choices(producing, compression=LogCompression)
        self._root = root
        self._producing = producing
        self._consuming = consuming
        self._clock = clock
        try:
            self._database = Database(root)
            self._page = map_page(root / "bell")
        except (OSError, sqlite3.Error) as error:
            raise ProviderUnavailable(f"cannot open the log under {root}: {error}; check the folder") from error
        self._bell = Bell(self._page, 0)
        self._catalog = Catalog(self._database)
        recover_after_restart(root, self._catalog)
        self._groups = Groups(self._database)
        self._outcomes = Outcomes(self._database, clock)
        self._cleaner = Cleaner(root, self._catalog, self._groups, self._outcomes, clock)
        self._clean_every_s = clean_every_s
        self._lock = threading.Lock()
        self._cleaning: CleaningThread | None = None
        # By whether they wait for the disk.
        self._senders: dict[ProducerOptions, Sender] = {}
        self._is_closed = False

    def producer(self, default_topic: str = "", *, lasting: bool = True) -> LogProducer:
        options = self._producing
        if not lasting and options.acks == "all":
            options = replace(options, acks="1")
        with self._lock:
            self._keep_clean()
            if options not in self._senders:
                self._senders[options] = Sender(self._writers(options), options, self._clock)
            return LogProducer(self._senders[options], default_topic)

    def transactional_producer(self, transactional_id: str) -> LogTransactionalProducer:
        with self._lock:
            self._keep_clean()
        writers = self._writers(self._producing)
        return LogTransactionalProducer(self._database, writers, transactional_id, self._producing, self._clock)

    def consumer(
        self, group: str, topic: str = "", *, member_id: str | None = None, max_poll_records: int | None = None
    ) -> LogConsumer:
        options = self._consuming.with_at_most(max_poll_records)
        membership = Membership(
            self._root, self._catalog, self._groups, group, self._consuming.session_timeout_ms, self._clock,
            check_member_id(member_id),
        )  # fmt: skip
        return LogConsumer(
            self._root, self._catalog, membership, self._bell, self._outcome(), topic, options, self._clock
        )

    def reader(self) -> LogReader:
        return LogReader(self._root, self._catalog, self._outcome())

    def admin(self) -> LogAdmin:
        return LogAdmin(self._root, self._catalog, self._groups, self._cleaner)

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            for sender in self._senders.values():
                sender.stop()
            if self._cleaning is not None:
                self._cleaning.stop()
        # The bell's page goes with the last who waits for it, perhaps a consumer in another thread.
        self._database.close()

    def _keep_clean(self) -> None:
        """Under the lock."""
        if self._cleaning is None and not self._is_closed:
            self._cleaning = CleaningThread(self._cleaner, self._clean_every_s)

    def _writers(self, options: ProducerOptions) -> Writers:
        return Writers(
            self._root, self._catalog, lambda: new_producer(self._database), options, self._bell, self._clock
        )

    def _outcome(self) -> Outcome:
        return self._outcomes if self._consuming.isolation == "read_committed" else everything
