"""The `in-memory` provider as a whole."""

import weakref
from typing import Final

from queuecore.messages import Record
from queuecore.providers.base import Capabilities
from queuecore.providers.memory.admin import MemoryAdmin
from queuecore.providers.memory.consumer import MemoryConsumer
from queuecore.providers.memory.producer import MemoryProducer
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.providers.memory.transactions import MemoryTransactionalProducer
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.topics import ProviderPartition

CAPABILITIES: Final = Capabilities(durable=False, transactions=True, compaction=True, group_strategies=True)
PRODUCING: Final = ProducerOptions()
CONSUMING: Final = ConsumerOptions()


class MemoryReader:
    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage

    def read(self, partition: ProviderPartition, offset: int, max_records: int) -> list[Record]:
        with self._storage.lock:
            return self._storage.partition(partition).read(offset, max_records)

    def close(self) -> None:
        """Nothing is kept open."""


class MemoryProvider:
    """A view of a storage, by default of one of its own. Everything is gone with the storage.

    Closing stops the producers and consumers that were made here and are still in use; the storage stays.
    """

    def __init__(
        self,
        storage: MemoryStorage | None = None,
        *,
        producing: ProducerOptions = PRODUCING,
        consuming: ConsumerOptions = CONSUMING,
    ) -> None:
        self._storage = storage or MemoryStorage()
        self._producing = producing
        self._consuming = consuming
        self._made: weakref.WeakSet[MemoryProducer | MemoryTransactionalProducer | MemoryConsumer] = weakref.WeakSet()

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def producer(self, default_topic: str = "") -> MemoryProducer:
        producer = MemoryProducer(self._storage, default_topic, self._producing)
        self._made.add(producer)
        return producer

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        producer = MemoryTransactionalProducer(self._storage, transactional_id, self._producing)
        self._made.add(producer)
        return producer

    def consumer(self, group: str, topic: str = "") -> MemoryConsumer:
        consumer = MemoryConsumer(self._storage, group, topic, self._consuming)
        self._made.add(consumer)
        return consumer

    def reader(self) -> MemoryReader:
        return MemoryReader(self._storage)

    def admin(self) -> MemoryAdmin:
        return MemoryAdmin(self._storage)

    def close(self) -> None:
        for one in list(self._made):
            one.stop()
