"""The `in-memory` provider as a whole."""

import threading
import weakref
from collections.abc import Callable
from typing import Final, TypeVar

from queuecore.errors import QueueError
from queuecore.groups.members import check_member_id
from queuecore.messages import Record
from queuecore.providers.base import Capabilities
from queuecore.providers.memory.admin import MemoryAdmin
from queuecore.providers.memory.consumer import MemoryConsumer
from queuecore.providers.memory.producer import MemoryProducer
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.providers.memory.transactions import MemoryTransactionalProducer
from queuecore.providers.options import DEFAULT_CONSUMING, DEFAULT_PRODUCING, ConsumerOptions, ProducerOptions
from queuecore.topics import ProviderPartition

CAPABILITIES: Final = Capabilities(durable=False, transactions=True, compaction=True, group_strategies=True)

Made = MemoryProducer | MemoryTransactionalProducer | MemoryConsumer
MadeT = TypeVar("MadeT", MemoryProducer, MemoryTransactionalProducer, MemoryConsumer)


class MemoryReader:
    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self._positions: dict[ProviderPartition, int] = {}

    def read(self, partition: ProviderPartition, offset: int, max_records: int) -> list[Record]:
        with self._storage.lock:
            stored = self._storage.partition(partition)
            records = stored.read(offset, max_records)
            is_cut = len(records) == max_records
            self._positions[partition] = records[-1].offset + 1 if is_cut else max(offset, stored.end)
        return records

    def position(self, partition: ProviderPartition) -> int:
        return self._positions[partition]

    def close(self) -> None:
        """Nothing is kept open."""


class MemoryProvider:
    """A view of a storage, by default of one of its own. Everything is gone with the storage.

    Closing stops the producers and consumers that were made here and are still in use, and no more are made; the
    storage stays. What waits for room in a full partition is refused then, as nobody may ever make some.
    """

    def __init__(
        self,
        storage: MemoryStorage | None = None,
        *,
        producing: ProducerOptions = DEFAULT_PRODUCING,
        consuming: ConsumerOptions = DEFAULT_CONSUMING,
    ) -> None:
        self._storage = storage or MemoryStorage()
        self._producing = producing
        self._consuming = consuming
        self._made: weakref.WeakSet[Made] = weakref.WeakSet()
        self._is_closed = False
        self._changing = threading.Lock()

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def producer(self, default_topic: str = "", *, lasting: bool = True) -> MemoryProducer:  # noqa: ARG002
        return self._keep(lambda: MemoryProducer(self._storage, default_topic, self._producing))

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        return self._keep(lambda: MemoryTransactionalProducer(self._storage, transactional_id, self._producing))

    def consumer(
        self, group: str, topic: str = "", *, member_id: str | None = None, max_poll_records: int | None = None
    ) -> MemoryConsumer:
        check_member_id(member_id)
        options = self._consuming.with_at_most(max_poll_records)
        return self._keep(lambda: MemoryConsumer(self._storage, group, topic, options, member_id))

    def reader(self) -> MemoryReader:
        return MemoryReader(self._storage)

    def admin(self) -> MemoryAdmin:
        return MemoryAdmin(self._storage)

    def close(self) -> None:
        with self._changing:
            self._is_closed = True
            made = list(self._made)
        for one in made:
            if isinstance(one, MemoryProducer):
                one.stop_at_once()
            else:
                one.stop()

    def _keep(self, make: Callable[[], MadeT]) -> MadeT:
        """Make one that is stopped when the provider is closed."""
        with self._changing:
            if self._is_closed:
                raise QueueError("this provider has been closed; open a new one")
            one = make()
            self._made.add(one)
            return one
