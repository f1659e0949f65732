"""What the parts of the contract suite share."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Protocol
from uuid import uuid4

import pytest

from queuecore.errors import NotOwner, QueueError
from queuecore.messages import QueueMessage, Record, RecordMetadata
from queuecore.providers.base import AssignmentListener, Epochs, Provider, QueueConsumer, QueueProducer, TopicSpec
from queuecore.providers.options import DEFAULT_CONSUMING, DEFAULT_PRODUCING, ConsumerOptions, ProducerOptions
from queuecore.sending import send
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

POLL_MS = 50


class OpenProvider(Protocol):
    """Opens the same storage anew, as another process would."""

    def __call__(
        self, producing: ProducerOptions = DEFAULT_PRODUCING, consuming: ConsumerOptions = DEFAULT_CONSUMING
    ) -> Provider: ...


class Subscribe(Protocol):
    """Makes a subscribed consumer that is stopped at the end, whatever happens."""

    def __call__(
        self,
        provider: Provider,
        group: str,
        partitions: Iterable[TopicPartitionInfo] | None = None,
        *,
        topic: str = "",
        listener: AssignmentListener | None = None,
        member_id: str | None = None,
        epochs: Epochs | None = None,
    ) -> QueueConsumer: ...


@contextmanager
def opened(factory: Callable[[ProducerOptions, ConsumerOptions], Provider]) -> Iterator[OpenProvider]:
    """Opens providers by `factory`, and closes them at the end."""
    with ExitStack() as stack:

        def open_provider(
            producing: ProducerOptions = DEFAULT_PRODUCING, consuming: ConsumerOptions = DEFAULT_CONSUMING
        ) -> Provider:
            return stack.enter_context(closing(factory(producing, consuming)))

        yield open_provider


@dataclass
class Answers:
    """What one send's callback was told, and on which thread."""

    given: list[tuple[RecordMetadata | None, QueueError | None]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)

    def __call__(self, metadata: RecordMetadata | None, error: QueueError | None) -> None:
        self.given.append((metadata, error))
        self.threads.add(threading.get_ident())


@dataclass
class Heard:
    """A listener that keeps what it was told, and knows from that what its consumer holds."""

    holds: frozenset[ProviderPartition] = frozenset()
    given_up: set[ProviderPartition] = field(default_factory=set)
    gone: set[ProviderPartition] = field(default_factory=set)

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        self.holds |= partitions

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        self.holds -= partitions
        self.given_up |= partitions

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        self.holds -= partitions
        self.gone |= partitions


def new_name() -> str:
    return f"contract-{uuid4().hex[:12]}"


def create_topic(provider: Provider, spec: TopicSpec) -> list[TopicPartitionInfo]:
    """Create it; its partitions."""
    provider.admin().create_topics([spec])
    return [TopicPartitionInfo(spec.name, number, use_internal_partition=True) for number in range(spec.partitions)]


def place_of(record: Record) -> ProviderPartition:
    return ProviderPartition(record.topic, record.partition)


def places(infos: Iterable[TopicPartitionInfo]) -> list[ProviderPartition]:
    return [info.place for info in infos]


def send_all(provider: Provider, info: TopicPartitionInfo, *data: bytes) -> list[RecordMetadata]:
    """Send these, one after the other, and wait until all are stored."""
    return send_messages(provider, info, *[QueueMessage(None, one) for one in data])


def send_messages(provider: Provider, info: TopicPartitionInfo, *messages: QueueMessage) -> list[RecordMetadata]:
    producer = provider.producer()
    futures = [send(producer, info, message) for message in messages]
    return [future.result(DEADLINE_S) for future in futures]


def settle(futures: Iterable["Future[RecordMetadata]"]) -> list[QueueError | None]:
    return [error if isinstance(error := future.exception(DEADLINE_S), QueueError) else None for future in futures]


def read_all(provider: Provider, place: ProviderPartition) -> list[bytes]:
    """The data of everything a reader finds."""
    with closing(provider.reader()) as reader:
        found: list[Record] = []
        [at] = provider.admin().beginning_offsets([place]).values()
        while records := reader.read(place, at, 1_000):
            found += records
            at = records[-1].offset + 1
        return [record.data for record in found]


def take(consumer: QueueConsumer, count: int) -> list[Record]:
    """Poll until that many records came; the deadline makes a missing one an error."""
    records: list[Record] = []

    def enough() -> bool:
        records.extend(consumer.poll(POLL_MS))
        return len(records) >= count

    wait_until(enough)
    return records


def hold(wanted: dict[QueueConsumer, Callable[[frozenset[ProviderPartition]], bool]]) -> None:
    """Poll the consumers in turn, while there is nothing to read, until what each holds is as wanted."""

    def as_wanted() -> bool:
        for consumer in wanted:
            if consumer.poll(POLL_MS):
                raise AssertionError("a record came where none was sent")
        return all(is_right(consumer.partitions) for consumer, is_right in wanted.items())

    wait_until(as_wanted)


def accept(consumers: list[QueueConsumer], count: int) -> list[tuple[QueueConsumer, Record]]:
    """Poll the consumers in turn until `count` records were polled and committed; who accepted which.

    A commit that is refused because the partition just moved means those records are not done: they come again.
    """
    accepted: list[tuple[QueueConsumer, Record]] = []

    def enough() -> bool:
        for consumer in consumers:
            records = consumer.poll(POLL_MS)
            for place in set(map(place_of, records)):
                of_place = [one for one in records if place_of(one) == place]
                try:
                    consumer.commit({place: of_place[-1].offset + 1})
                except NotOwner:
                    continue
                accepted.extend((consumer, record) for record in of_place)
        return len(accepted) >= count

    wait_until(enough)
    return accepted


class ContractKit:
    """Subclasses give `open_provider`."""

    # Whether a queue's partitions are inside one topic, or each is a topic of its own.
    use_internal_partition: ClassVar[bool] = False

    # A session that ends soon, to see what becomes of a consumer that is silent for longer. None where a consumer that
    # only stops polling counts as alive for longer than a test can wait.
    short_session_ms: ClassVar[int | None] = 500

    # Whether work from before a loss is told from that of today, when the partition is back.
    knows_work_from_before: ClassVar[bool] = True

    # Whether offsets that are committed are compared with the partition's end.
    knows_ends: ClassVar[bool] = True

    # Whether a commit is compared with the epoch that is stored, and one without an epoch leaves that as it is. Where
    # not, the group alone refuses commits.
    compares_epochs: ClassVar[bool] = True

    # Whether one that was displaced hears of it even where the other is gone again.
    remembers_displaced: ClassVar[bool] = True

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
        """One partition of a queue. Inside a topic it is not the first."""
        return self.create_queue(provider, 2)[1]

    @pytest.fixture
    def queue(self, provider: Provider) -> list[TopicPartitionInfo]:
        """A queue's partitions, of which there are three."""
        return self.create_queue(provider, 3)

    @pytest.fixture
    def inner(self, provider: Provider) -> list[TopicPartitionInfo]:
        """Three partitions inside one topic."""
        return create_topic(provider, TopicSpec(new_name(), partitions=3))

    @pytest.fixture
    def consumers(self) -> Iterator[Subscribe]:
        with ExitStack() as stack:

            def subscribe(
                provider: Provider,
                group: str,
                partitions: Iterable[TopicPartitionInfo] | None = None,
                *,
                topic: str = "",
                listener: AssignmentListener | None = None,
                member_id: str | None = None,
                epochs: Epochs | None = None,
            ) -> QueueConsumer:
                consumer = provider.consumer(group, topic, member_id=member_id)
                stack.callback(consumer.stop)
                consumer.subscribe(partitions, listener, epochs)
                return consumer

            yield subscribe

    def create_queue(self, provider: Provider, partitions: int) -> list[TopicPartitionInfo]:
        """Create the topics of a queue with so many partitions; the partitions."""
        inside, name = self.use_internal_partition, new_name()
        infos = [TopicPartitionInfo(name, number, use_internal_partition=inside) for number in range(partitions)]
        each = partitions if inside else 1
        provider.admin().create_topics([TopicSpec(topic, each) for topic in {info.full_topic_name for info in infos}])
        return infos
