"""Messages in several partitions and a group's offsets, all or nothing.

Batches of a transaction carry its number and are written as they come; nobody who reads committed sees them before the
catalog has its row. Committing waits until all of them are on disk, then writes that row and the offsets together.
"""

from collections import defaultdict
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import QueueError, TransactionAborted
from queuecore.messages import QueueMessage
from queuecore.providers.base import Epochs, QueueConsumer
from queuecore.providers.log import outcomes
from queuecore.providers.log.consumer import LogConsumer
from queuecore.providers.log.database import Database
from queuecore.providers.log.faults import encode_if_sound, find_fault
from queuecore.providers.log.groups import check_owner, check_stored_epochs, store_offsets
from queuecore.providers.log.membership import Membership
from queuecore.providers.log.writers import Writers
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo

TIMEOUT_MS = 60_000


class LogTransactionalProducer:
    """For one thread."""

    def __init__(
        self,
        database: Database,
        writers: Writers,
        transactional_id: str,
        options: ProducerOptions,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._database = database
        self._writers = writers
        self._options = options
        self._clock = clock
        self._id, self._epoch = outcomes.take_over(database, transactional_id)
        self._numbers = outcomes.reserve(database)
        self._open: LogTransaction | None = None
        self._is_stopped = False

    @property
    def batch_limit(self) -> int:
        return self._options.max_request_size

    def begin(self) -> "LogTransaction":
        if self._is_stopped:
            raise QueueError("this producer has been stopped; open a new one")
        if self._open is not None and not self._open.is_over:
            raise QueueError("a transaction is open already; commit or abort it first")
        deadline_ms = self._clock.now_ms() + TIMEOUT_MS
        number = self._next_number()
        outcomes.begin(self._database, number, self._id, self._epoch, deadline_ms)
        self._open = LogTransaction(self, number)
        return self._open

    def check(self, info: TopicPartitionInfo, message: QueueMessage) -> None:
        if (error := find_fault(message, self._writers.spec(info.place), self._options)) is not None:
            raise error

    def stop(self) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            if self._open is not None:
                self._open.abort()
            self._writers.close()

    def write(self, transaction: int, place: ProviderPartition, messages: list[QueueMessage]) -> int:
        """Append a batch of the transaction; the offset behind it. The error of a message that cannot be stored."""
        spec = self._writers.spec(place)
        body = encode_if_sound(messages, spec, self._options)
        if body is None:
            raise next(error for one in messages if (error := find_fault(one, spec, self._options)) is not None)
        base = self._writers.append(place, body, self._clock.now_ms(), transaction)
        return base + len(messages)

    def finish(self, transaction: int, ends: Mapping[ProviderPartition, int], offsets: "list[_GroupOffsets]") -> None:
        for place, end in ends.items():
            self._writers.sync(place, end)
        with self._database.writing(durable=True) as db:
            for membership, positions, epochs in offsets:
                check_stored_epochs(db, membership.group, epochs)
                membership.check_owned(positions)
                who = (membership.group, membership.name, membership.version)
                check_owner(db, *who, positions, membership.member_id)
                store_offsets(db, membership.group, positions, epochs)
            outcomes.finish(db, transaction, self._id, self._epoch, self._clock.now_ms())
        self._writers.ring()

    def give_up(self, transaction: int) -> None:
        outcomes.abort(self._database, transaction)
        self._writers.ring()

    def _next_number(self) -> int:
        try:
            return next(self._numbers)
        except QueueError:  # a generator that raised is over
            self._numbers = outcomes.reserve(self._database)
            raise


# With the epochs of the partitions that have one.
_GroupOffsets = tuple[Membership, Mapping[ProviderPartition, int], Epochs]


class LogTransaction:
    def __init__(self, producer: LogTransactionalProducer, number: int) -> None:
        self._producer = producer
        self._number = number
        self._waiting: dict[ProviderPartition, list[QueueMessage]] = defaultdict(list)
        self._sizes: dict[ProviderPartition, int] = defaultdict(int)
        self._ends: dict[ProviderPartition, int] = {}
        self._offsets: list[_GroupOffsets] = []
        # Shows at the commit, which is then none.
        self._failure: QueueError | None = None
        self.is_over = False

    def send(self, info: TopicPartitionInfo, message: QueueMessage) -> None:
        self._refuse_over()
        place = info.place
        self._waiting[place].append(message)
        self._sizes[place] += len(message.data)
        if self._sizes[place] >= self._producer.batch_limit:
            self._write(place)

    def commit_offsets(self, consumer: QueueConsumer, offsets: Mapping[ProviderPartition, int]) -> None:
        self._refuse_over()
        if not isinstance(consumer, LogConsumer):
            raise QueueError("the consumer belongs to another provider; its offsets cannot be part of this transaction")
        epochs = consumer.fence.of(offsets)
        consumer.membership.check_may_commit(offsets, epochs)
        consumer.check_commit(offsets)
        self._offsets.append((consumer.membership, dict(offsets), epochs))

    def commit(self) -> None:
        self._refuse_over()
        try:
            for place in list(self._waiting):
                self._write(place)
            if self._failure is not None:
                raise self._failure
            self._producer.finish(self._number, self._ends, self._offsets)
        except BaseException:
            self.abort()
            raise
        self.is_over = True

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._producer.give_up(self._number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            if not self.is_over:
                self.commit()
        else:
            self.abort()

    def _write(self, place: ProviderPartition) -> None:
        messages = self._waiting.pop(place, [])
        self._sizes.pop(place, None)
        if not messages or self._failure is not None:
            return
        try:
            self._ends[place] = self._producer.write(self._number, place, messages)
        except QueueError as error:
            self._failure = error

    def _refuse_over(self) -> None:
        if self.is_over:
            raise TransactionAborted("this transaction is over; begin another")
