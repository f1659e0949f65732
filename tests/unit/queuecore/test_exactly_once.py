"""Exactly once through the façade: what becomes of a transaction that is undone, and of one whose partition goes."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from queuecore import DeliveryContext, Queues, Record
from queuecore.errors import TransactionAborted
from queuecore.messages import QueueMessage
from queuecore.providers.base import Transaction, TransactionalProducer
from queuecore.providers.memory import MemoryProvider
from queuecore.testing.contract.kit import read_all
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo

PARTITIONS = 4


class Shaky:
    """A producer whose first transactions are undone."""

    def __init__(self, producer: TransactionalProducer, failures: list[str]) -> None:
        self._producer = producer
        self._failures = failures

    def begin(self) -> Transaction:
        transaction = self._producer.begin()
        if self._failures:
            transaction.abort()
            raise TransactionAborted(self._failures.pop())
        return transaction

    def check(self, info: TopicPartitionInfo, message: QueueMessage) -> None:
        self._producer.check(info, message)

    def stop(self) -> None:
        self._producer.stop()


class ShakyProvider(MemoryProvider):
    """Transactions are undone while there is a reason left."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[str] = []

    def transactional_producer(self, transactional_id: str) -> Shaky:  # type: ignore[override]
        return Shaky(super().transactional_producer(transactional_id), self.failures)


@pytest.fixture
def provider() -> Iterator[ShakyProvider]:
    with closing(ShakyProvider()) as provider:
        yield provider


@pytest.fixture
def queues(provider: ShakyProvider) -> Iterator[Queues]:
    with Queues(provider) as queues:
        queues.create("in", PARTITIONS)
        queues.create("out")
        yield queues


class Relay:
    """Sends on whatever it is given, and remembers that."""

    def __init__(self) -> None:
        self.handled: Counter[bytes] = Counter()

    def handle(self, record: Record, context: DeliveryContext) -> None:
        self.handled[record.data] += 1
        context.send("out", None, record.data)


def publish(queues: Queues, *numbers: int) -> Counter[bytes]:
    data = [b"%d" % number for number in numbers]
    for future in [queues.publish("in", one, one) for one in data]:
        future.result(DEADLINE_S)
    return Counter(data)


def outputs(provider: MemoryProvider) -> Counter[bytes]:
    return Counter(read_all(provider, TopicPartitionInfo("out", 0).place))


def test_a_transaction_that_was_undone_is_tried_again_without_the_handler(
    provider: ShakyProvider, queues: Queues
) -> None:
    published, relay = publish(queues, *range(20)), Relay()
    provider.failures += ["the group divides its partitions anew"] * 3
    with queues.subscribe("in", relay.handle, group="g", delivery="exactly_once") as relaying:
        assert relaying.drain(DEADLINE_S)
    assert provider.failures == []
    assert outputs(provider) == relay.handled == published


def test_a_member_goes_on_when_the_partition_it_sends_under_goes_to_another(
    provider: ShakyProvider, queues: Queues
) -> None:
    relay = Relay()
    published: Counter[bytes] = Counter()
    with queues.subscribe("in", relay.handle, group="g", delivery="exactly_once") as first:
        wait_until(lambda: len(first.partitions) == PARTITIONS)
        for round_number in range(4):
            with queues.subscribe("in", relay.handle, group="g", delivery="exactly_once") as second:
                wait_until(lambda second=second: first.partitions and second.partitions)
                published += publish(queues, *range(20 * round_number, 20 * round_number + 20))
                assert second.drain(DEADLINE_S)
            wait_until(lambda: len(first.partitions) == PARTITIONS)
        assert first.drain(DEADLINE_S)
    assert outputs(provider) == relay.handled == published
