"""What becomes of messages while the queue is away, and of producers while consumers are slow: the last two rows of the
table in docs/howto/cluster.md. The other two are in test_failover.py."""

import logging
import os
import re
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from queuecore import DeliveryContext, Queues, Record, open_queues
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.errors import PartitionFull, ProviderUnavailable
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.log import LogProvider
from queuecore.providers.log.writer import PartitionWriter
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send
from queuecore.submit import SubmitStrategyType, submit_strategy
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.services import running

PATIENCE_S = 2 * DEADLINE_S
KEY = "pump-7"
# Room for some sixteen messages of a thousand bytes; then callers are told soon rather than made to wait.
NARROW = ProducerOptions(buffer_memory=20_000, max_request_size=20_000, max_block_ms=50)
SENT_AT_MOST = 1_000


def numbered(numbers: range) -> list[bytes]:
    return [f"{number:04}".ljust(1_000).encode() for number in numbers]


class Notes:
    """What a handler was given, each message once, in the order of the first time."""

    def __init__(self) -> None:
        self.seen: dict[bytes, None] = {}
        self.goes = threading.Event()

    def handle(self, record: Record, _context: DeliveryContext) -> None:
        assert self.goes.wait(PATIENCE_S)
        self.seen[record.data] = None


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaService]:
    yield from running(KafkaService(tmp_path / "kafka", ephemeral=True))


def test_queue_unavailable_on_kafka(broker: KafkaService, notes: Notes) -> None:
    """What is sent while the broker is away waits, and is stored in order when it is back. Who consumes goes on by
    itself."""
    notes.goes.set()
    before, meanwhile = numbered(range(10)), numbered(range(10, 60))
    with open_queues("kafka", servers=broker.bootstrap_servers) as queues:
        queues.create("in")
        with queues.subscribe("in", notes.handle, group="readers"):
            for data in before:
                queues.publish("in", KEY, data)
            wait_until(lambda: list(notes.seen) == before, PATIENCE_S)
            broker.stop()
            stored = [queues.publish("in", KEY, data) for data in meanwhile]
            assert not queues.flush(0.1)
            broker.start()
            offsets = [one.result(PATIENCE_S).offset for one in stored]
            assert offsets == list(range(10, 60))
            wait_until(lambda: list(notes.seen) == [*before, *meanwhile], PATIENCE_S)


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """As on a disk that is full for the large ones."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def pauses(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Of who joins its group again, in seconds."""
    said = [re.search(r"joins its group again in (\S+) s", one.getMessage()) for one in caplog.records]
    return [one[1] for one in said if one is not None]


def test_queue_unavailable_on_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture, notes: Notes) -> None:
    """A topic that cannot be written to refuses each message, and says that it may be sent again. A consumer whose
    handler writes there stands still, tries again after longer and longer pauses, and goes on when there is room."""
    caplog.set_level(logging.DEBUG, "queuecore")
    large = 4 * 1024 * 1024
    [data] = numbered(range(1))
    notes.goes.set()

    def forward(record: Record, context: DeliveryContext) -> None:
        context.send("out", KEY, record.data)

    with open_queues("log", folder=tmp_path / "log") as queues:
        queues.create("in")
        queues.create("out")
        for _ in range(large // 1_000_000 + 1):
            queues.publish("out", KEY, bytes(1_000_000)).result(DEADLINE_S)
        with no_file_grows_beyond(large), queues.subscribe("in", forward, group="forwarders"):
            with pytest.raises(ProviderUnavailable) as refused:
                queues.publish("out", KEY, data).result(DEADLINE_S)
            assert refused.value.retryable
            for one in numbered(range(50)):
                queues.publish("in", KEY, one).result(DEADLINE_S)
            wait_until(lambda: len(pauses(caplog)) >= 3, PATIENCE_S)
            assert pauses(caplog)[:3] == ["0.2", "0.4", "0.8"]
        with queues.subscribe("in", forward, group="forwarders"), queues.subscribe("out", notes.handle, group="all"):
            wait_until(lambda: [one for one in list(notes.seen) if any(one)] == numbered(range(50)), PATIENCE_S)


class Flood:
    """What is sent until that is refused, which is soon where nothing is stored."""

    def __init__(self, offer: Callable[[bytes], "Future[RecordMetadata]"]) -> None:
        self.taken: list[bytes] = []
        self.stored: list[Future[RecordMetadata]] = []
        self.error: BaseException | None = None
        for data in numbered(range(SENT_AT_MOST)):
            self._send(offer, data)
            if self.error is not None:
                return
        raise AssertionError(f"{SENT_AT_MOST} messages were taken")

    @property
    def waiting(self) -> int:
        """How many were taken, and are not answered."""
        return sum(not one.done() for one in self.stored)

    def _send(self, offer: Callable[[bytes], "Future[RecordMetadata]"], data: bytes) -> None:
        try:
            stored = offer(data)
        except ProviderUnavailable as error:
            self.error = error
            return
        if stored.done() and stored.exception() is not None:
            self.error = stored.exception()
            return
        self.taken.append(data)
        self.stored.append(stored)


def publish_to(queues: Queues) -> Callable[[bytes], "Future[RecordMetadata]"]:
    return lambda data: queues.publish("in", KEY, data)


def test_overload_in_memory_makes_producers_wait(notes: Notes) -> None:
    """As long as the consumer does nothing, no more is taken than the partition and the buffer hold. Who sends waits,
    and all that was taken is handled."""
    capacity, sent = 20, numbered(range(500))
    waits = ProducerOptions(buffer_memory=20_000, max_request_size=20_000)
    stored: list[Future[RecordMetadata]] = []
    with open_queues("in-memory", capacity=capacity, producing=waits) as queues:
        queues.create("in")
        with queues.subscribe("in", notes.handle, group="slow"):
            publisher = threading.Thread(target=lambda: stored.extend(map(publish_to(queues), sent)))
            publisher.start()
            wait_until(lambda: len(stored) >= capacity)
            assert not queues.flush(0.2)
            assert len(stored) <= capacity + 20_000 // 1_000
            notes.goes.set()
            publisher.join(PATIENCE_S)
            wait_until(lambda: list(notes.seen) == sent, PATIENCE_S)
    assert [one.exception() for one in stored] == [None] * 500


def test_overload_in_memory_refuses_where_nobody_is_to_wait(notes: Notes) -> None:
    with open_queues("in-memory", capacity=20, when_full="reject") as queues:
        queues.create("in")

        def offer(data: bytes) -> "Future[RecordMetadata]":
            stored = queues.publish("in", KEY, data)
            assert queues.flush(DEADLINE_S)
            return stored

        with queues.subscribe("in", notes.handle, group="slow"):
            flood = Flood(offer)
            assert isinstance(flood.error, PartitionFull)
            assert flood.error.retryable
            assert len(flood.taken) == 20
            notes.goes.set()
            wait_until(lambda: list(notes.seen) == flood.taken, PATIENCE_S)


def check_push_back(queues: Queues, notes: Notes, overload: Callable[[], AbstractContextManager[None]]) -> None:
    """While the provider does not come to writing, the producer takes what its buffer holds and then says so. All that
    it took is handled, and it takes more, once the provider does."""
    notes.goes.set()
    with queues.subscribe("in", notes.handle, group="readers"):
        queues.publish("in", KEY, b"first").result(PATIENCE_S)
        with overload():
            flood = Flood(publish_to(queues))
            assert isinstance(flood.error, ProviderUnavailable)
            assert flood.error.retryable
            # On Kafka they wait in three places: to be taken, to be handed to the library, and there.
            assert 0 < flood.waiting <= 3 * NARROW.buffer_memory // 1_000
        wait_until(lambda: list(notes.seen) == [b"first", *flood.taken], PATIENCE_S)
        queues.publish("in", KEY, b"last").result(PATIENCE_S)
        wait_until(lambda: list(notes.seen) == [b"first", *flood.taken, b"last"], PATIENCE_S)


def test_overload_on_the_log_pushes_back(tmp_path: Path, notes: Notes) -> None:
    @contextmanager
    def overload() -> Iterator[None]:
        """Another has the partition's lock, and is in no hurry."""
        with closing(PartitionWriter(tmp_path, ProviderPartition("in.0", 0))) as writer, writer.exclusively():
            yield

    with open_queues("log", folder=tmp_path, producing=NARROW) as queues:
        queues.create("in")
        check_push_back(queues, notes, overload)


def test_overload_on_kafka_pushes_back(broker: KafkaService, notes: Notes) -> None:
    @contextmanager
    def overload() -> Iterator[None]:
        """The broker does not come to answering."""
        assert broker.pid is not None
        os.killpg(broker.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(broker.pid, signal.SIGCONT)

    with open_queues("kafka", servers=broker.bootstrap_servers, producing=NARROW) as queues:
        queues.create("in")
        check_push_back(queues, notes, overload)


@pytest.fixture(params=["in-memory", "log", "kafka"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Provider]:
    match request.param:
        case "in-memory":
            opened: Provider = MemoryProvider(MemoryStorage())
        case "log":
            opened = LogProvider(tmp_path / "log")
        case _:
            opened = KafkaProvider(request.getfixturevalue("kafka_service").bootstrap_servers)
    with closing(opened):
        yield opened


def test_overload_of_one_partition_is_held_back_while_others_go_on(provider: Provider, notes: Notes) -> None:
    """Of the slow partition no more is read than may be open. The other is read by the same consumer, to its end."""
    slow, quick = (TopicPartitionInfo("overload", number) for number in (0, 1))
    plan = ConsumptionPlan(
        "overload",
        "overloaded",
        (slow, quick),
        "wait",
        submit=submit_strategy(SubmitStrategyType.SEQUENTIAL, 1),
        timeout_ms=None,
        pack_size=10,
        max_open=30,
    )
    provider.admin().create_topics([TopicSpec(info.full_topic_name) for info in plan.infos])
    data = numbered(range(500))
    passed: list[bytes] = []

    def handle(record: Record, context: DeliveryContext) -> None:
        if record.topic == slow.full_topic_name:
            notes.handle(record, context)
        else:
            passed.append(record.data)

    producer = provider.producer()
    for stored in [send(producer, info, QueueMessage(None, one)) for info in plan.infos for one in data]:
        stored.result(PATIENCE_S)
    consumption = Consumption(plan, provider, handle)
    consumption.start()
    try:
        wait_until(lambda: passed == data, PATIENCE_S)
        assert consumption.counts.polled - len(passed) <= plan.max_open
        notes.goes.set()
        wait_until(lambda: list(notes.seen) == data, PATIENCE_S)
    finally:
        notes.goes.set()
        consumption.stop(DEADLINE_S)
