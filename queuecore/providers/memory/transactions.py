"""Transactions: everything is kept back until the commit, which does all of it under one hold of the lock."""

from collections import defaultdict
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from queuecore.errors import ConfigurationError, ProducerFenced, QueueError, TransactionAborted
from queuecore.messages import QueueMessage
from queuecore.providers.base import Epochs, QueueConsumer
from queuecore.providers.memory.consumer import MemoryConsumer
from queuecore.providers.memory.messages import Stored, stored
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class MemoryTransactionalProducer:
    """What is not committed exists nowhere else, so a newer producer of the same id has nothing to abort."""

    def __init__(self, storage: MemoryStorage, transactional_id: str, options: ProducerOptions) -> None:
        if not transactional_id:
            raise ConfigurationError("a transactional producer needs a transactional id")
        self._storage = storage
        self._id = transactional_id
        self._options = options
        self._open: MemoryTransaction | None = None
        self._stopped = False
        with storage.lock:
            storage.epochs[transactional_id] += 1
            self._epoch = storage.epochs[transactional_id]

    def begin(self) -> "MemoryTransaction":
        with self._storage.lock:
            self.check_newest()
            if self._stopped:
                raise QueueError("this producer has been stopped; open a new one")
            if self._open is not None and self._open.is_open:
                raise QueueError(f"{self._id} has a transaction open; commit or abort it first")
            self._open = MemoryTransaction(self._storage, self, self._options)
            return self._open

    def check(self, info: TopicPartitionInfo, message: QueueMessage) -> None:  # noqa: ARG002
        stored(message, self._options.max_request_size)

    def stop(self) -> None:
        self._stopped = True
        if self._open is not None:
            self._open.abort()

    def check_newest(self) -> None:
        """ProducerFenced when a newer producer has the transactional id. With the lock."""
        if self._storage.epochs[self._id] != self._epoch:
            raise ProducerFenced(f"a newer producer has the transactional id {self._id}; this one has to stop")


class MemoryTransaction:
    """Made by `begin`. To be used by one thread."""

    def __init__(self, storage: MemoryStorage, producer: MemoryTransactionalProducer, options: ProducerOptions) -> None:
        self._storage = storage
        self._producer = producer
        self._options = options
        self.is_open = True
        self._took_effect = False
        # Each with its size.
        self._messages: dict[ProviderPartition, list[tuple[Stored, int]]] = defaultdict(list)
        # What was wrong with the first message that cannot be stored.
        self._error: QueueError | None = None
        # Each with the epochs of the partitions that have one.
        self._offsets: list[tuple[MemoryConsumer, dict[ProviderPartition, int], Epochs]] = []

    def send(self, info: TopicPartitionInfo, message: QueueMessage) -> None:
        self._check_open()
        try:
            self._messages[info.place].append(stored(message, self._options.max_request_size))
        except QueueError as error:
            self._error = self._error or error

    def commit_offsets(self, consumer: QueueConsumer, offsets: Mapping[ProviderPartition, int]) -> None:
        self._check_open()
        if not isinstance(consumer, MemoryConsumer):
            raise QueueError(f"the consumer is a {type(consumer).__name__}; use one of the same provider")
        with self._storage.lock:
            epochs = consumer.fence.of(offsets)
            consumer.check_commit(offsets, epochs)
        self._offsets.append((consumer, dict(offsets), epochs))

    def commit(self) -> None:
        self._check_open()
        # Whatever comes of it: there is no second try.
        self.is_open = False
        if self._error is not None:
            raise self._error
        wanted = {place: [message for message, _ in messages] for place, messages in self._messages.items()}
        with self._storage.lock:
            self._storage.wait_for_room(wanted, self._options.max_block_ms)
            # Only now: while this waited, others had the lock.
            self._producer.check_newest()
            self._check()
            self._apply()

    def abort(self) -> None:
        self.is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        elif self.is_open:
            self.commit()

    def _check(self) -> None:
        for place, messages in self._messages.items():
            for message, _ in messages:
                self._storage.partition(place).check(message)
        for consumer, offsets, epochs in self._offsets:
            consumer.check_commit(offsets, epochs)

    def _apply(self) -> None:
        now_ms = self._storage.clock.now_ms()
        for place, messages in self._messages.items():
            bodies, sizes = zip(*messages, strict=True)
            self._storage.partition(place).append(bodies, sizes, now_ms)
        for consumer, offsets, epochs in self._offsets:
            consumer.group.commit(offsets, epochs)
        self._took_effect = True
        self._storage.space_may_be_free()

    def _check_open(self) -> None:
        if self._took_effect:
            raise QueueError("this transaction has been committed; begin a new one")
        if not self.is_open:
            raise TransactionAborted("this transaction has been aborted, nothing of it took effect; begin a new one")
