"""A client of Kafka that does whatever a client can, on queues and groups that begin with its name."""

from contextlib import closing
from dataclasses import replace

from queuecore import DeliveryContext, Queues, Record
from queuecore.errors import NotAuthorised
from queuecore.groups.lag import read_standings
from queuecore.providers.base import DAY_MS
from queuecore.testing.contract.kit import read_all, take
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class Client:
    """Each step follows those before it, its own or those of another client of the same name. NotAuthorised where it
    lacks a right."""

    def __init__(self, queues: Queues, name: str) -> None:
        self._queues = queues
        self._provider = queues.provider
        self._admin = queues.provider.admin()
        self._source, self._target, self._group = f"{name}-source", f"{name}-target", f"{name}-group"
        self._info = TopicPartitionInfo(self._source, 0, use_internal_partition=True)
        self._place = self._info.place

    def create(self) -> None:
        for queue in (self._source, self._target):
            self._queues.create(queue, use_internal_partition=True)

    def publish(self) -> None:
        self._queues.publish(self._source, "key", b"hello").result(DEADLINE_S)

    def consume(self) -> None:
        consumer = self._provider.consumer(self._group)
        try:
            consumer.subscribe([self._info])
            assert {record.data for record in take(consumer, 1)} == {b"hello"}
            consumer.commit()
            assert self._admin.groups()[self._group].members
        finally:
            consumer.stop()

    def look(self) -> None:
        with closing(self._provider.reader()) as reader:
            assert reader.read(self._place, 0, 1)[0].data == b"hello"

    def send_on_exactly_once(self) -> None:
        def send_on(record: Record, context: DeliveryContext) -> None:
            context.send(self._target, record.key, record.data)

        # Raises what a subscription would log before it tries again.
        self._provider.transactional_producer(f"{self._source}/0/any").stop()
        relay = self._queues.subscribe(self._source, send_on, group=f"{self._group}-relay", delivery="exactly_once")
        with relay:
            assert relay.drain(DEADLINE_S)
        assert b"hello" in read_all(self._provider, ProviderPartition(self._target, 0))

    def describe(self) -> None:
        assert self._source in self._admin.topics()
        assert self._admin.describe_topics([self._source])[self._source].partitions[0].end

    def measure(self) -> None:
        if self._admin.describe_topics([self._source])[self._source].partitions[0].size_bytes is None:
            raise NotAuthorised("nobody tells the size")

    def alter_retention(self) -> None:
        there = self._admin.topics()[self._source]
        self._admin.alter_topics([replace(there, retention_ms=there.retention_ms + DAY_MS)])

    def grow(self) -> None:
        there = self._admin.topics()[self._source]
        self._admin.alter_topics([replace(there, partitions=there.partitions + 1)])

    def reset_offsets(self) -> None:
        self._admin.alter_group_offsets(self._group, {self._place: 0})
        assert read_standings(self._admin, {self._group: [self._place]})[self._group][self._place].lag

    def forget_offsets(self) -> None:
        self._admin.delete_group_offsets(self._group, [self._place])

    def delete(self) -> None:
        self._admin.delete_records({self._place: 1})
        self._admin.delete_topics([self._source])
