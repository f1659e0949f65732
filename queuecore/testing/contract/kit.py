"""What the parts of the contract suite share."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from queuecore.errors import NotOwner, QueueError
from queuecore.messages import QueueMessage, Record, RecordMetadata
from queuecore.providers.base import Provider, QueueConsumer, QueueProducer, TopicSpec
from queuecore.sending import send
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

OpenProvider = Callable[[], Provider]
Subscribe = Callable[[Provider, str, Iterable[TopicPartitionInfo]], QueueConsumer]

POLL_MS = 50


@contextmanager
def opened(factory: OpenProvider) -> Iterator[OpenProvider]:
    """`factory`, with everything it made closed at the end."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(factory()))


@dataclass
class Answers:
    """What one send's callback was told, and on which thread."""

    given: list[tuple[RecordMetadata | None, QueueError | None]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)

    def __call__(self, metadata: RecordMetadata | None, error: QueueError | None) -> None:
        self.given.append((metadata, error))
        self.threads.add(threading.get_ident())


def send_all(provider: Provider, info: TopicPartitionInfo, *data: bytes) -> list[RecordMetadata]:
    """Send these, one after the other, and wait until all are stored."""
    futures = [send(provider.producer(), info, QueueMessage(None, one)) for one in data]
    return [future.result(DEADLINE_S) for future in futures]


def take(consumer: QueueConsumer, count: int) -> list[Record]:
    """Poll until that many records came; the deadline makes a missing one an error."""
    records: list[Record] = []

    def enough() -> bool:
        records.extend(consumer.poll(POLL_MS))
        return len(records) >= count

    wait_until(enough)
    return records


def settle(futures: Iterable["Future[RecordMetadata]"]) -> list[QueueError | None]:
    return [error if isinstance(error := future.exception(DEADLINE_S), QueueError) else None for future in futures]


def accept(consumers: list[QueueConsumer], place: ProviderPartition, count: int) -> tuple[list[int], QueueConsumer]:
    """Poll the consumers in turn until `count` records were polled and committed; who had the last one.

    A commit that is refused because the partition just moved means those records are not done: they come again.
    """
    offsets: list[int] = []
    holders: list[QueueConsumer] = []

    def enough() -> bool:
        for consumer in consumers:
            records = consumer.poll(POLL_MS)
            if not records:
                continue
            try:
                consumer.commit({place: records[-1].offset + 1})
            except NotOwner:
                continue
            offsets.extend(record.offset for record in records)
            holders.append(consumer)
        return len(offsets) >= count

    wait_until(enough)
    return offsets, holders[-1]


class ContractKit:
    """Subclasses give `open_provider`: each call opens the same storage anew, as another process would."""

    @pytest.fixture
    def open_provider(self) -> OpenProvider:
        raise NotImplementedError("a contract suite gives its own open_provider fixture")

    @pytest.fixture
    def provider(self, open_provider: OpenProvider) -> Provider:
        return open_provider()

    @pytest.fixture
    def producer(self, provider: Provider) -> QueueProducer:
        return provider.producer()

    @pytest.fixture
    def group(self) -> str:
        return f"group-{uuid4().hex[:12]}"

    @pytest.fixture
    def info(self, provider: Provider) -> TopicPartitionInfo:
        """A partition that is a topic of its own."""
        info = TopicPartitionInfo(f"contract-{uuid4().hex[:12]}", 0)
        provider.admin().create_topics([TopicSpec(info.full_topic_name)])
        return info

    @pytest.fixture
    def inner(self, provider: Provider) -> list[TopicPartitionInfo]:
        """Three partitions inside one topic."""
        topic = f"contract-{uuid4().hex[:12]}"
        provider.admin().create_topics([TopicSpec(topic, partitions=3)])
        return [TopicPartitionInfo(topic, number, use_internal_partition=True) for number in range(3)]

    @pytest.fixture
    def consumers(self) -> Iterator[Subscribe]:
        """Make subscribed consumers that are stopped at the end, whatever happens."""
        with ExitStack() as stack:

            def subscribe(provider: Provider, group: str, partitions: Iterable[TopicPartitionInfo]) -> QueueConsumer:
                consumer = provider.consumer(group)
                stack.callback(consumer.stop)
                consumer.subscribe(partitions)
                return consumer

            yield subscribe
