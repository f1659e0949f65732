"""The `log` provider: sending and consuming 100-byte payloads on one partition."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from queuecore.errors import QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import QueueConsumer, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.producer import Acks
from queuecore.topics import TopicPartitionInfo
from tests.benchmarks.measuring import Benchmark, Measurement
from tests.benchmarks.peers import raw_file, sqlite_queue
from tests.benchmarks.peers.redis_streams import RedisStreams, redis_streams
from tests.benchmarks.workload import MESSAGES, RATE_UNIT, check_count, messages, rate

PARTITION = TopicPartitionInfo("bench", 0)
FLUSH_TIMEOUT_S = 600


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    with redis_streams(folder / "redis") as streams:
        yield [_produce("1", 500_000, streams), _produce("all", 200_000, streams), _consume(1_000_000, streams)]


def _produce(acks: Acks, goal: float, streams: RedisStreams) -> Benchmark:
    sync = acks == "all"
    raw = "write() + fdatasync()" if sync else "write()"
    sqlite = "SQLite, synchronous=full" if sync else "SQLite, synchronous=off"
    redis = "Redis Streams, appendfsync always" if sync else "Redis Streams, appendfsync no"
    return Benchmark(
        subject=Measurement(f"log produce acks={acks}", _measure_produce(acks)),
        peers=(
            Measurement(raw, raw_file.produce(sync=sync)),
            Measurement(sqlite, sqlite_queue.produce(sync=sync)),
            Measurement(redis, streams.produce(sync=sync)),
        ),
        unit=RATE_UNIT,
        goal=goal,
    )


def _consume(goal: float, streams: RedisStreams) -> Benchmark:
    return Benchmark(
        subject=Measurement("log consume", _measure_consume),
        peers=(
            Measurement("read()", raw_file.consume),
            Measurement("SQLite, position per pack", sqlite_queue.consume),
            Measurement("Redis Streams, group", streams.consume),
        ),
        unit=RATE_UNIT,
        goal=goal,
    )


def _measure_produce(acks: Acks) -> Callable[[Path], float]:
    """From the first send to the last acknowledgement."""

    def measure(folder: Path) -> float:
        sent = messages()
        with closing(_open(folder, acks)) as provider:
            return rate(MESSAGES, lambda: _send_all(provider, sent))

    return measure


def _measure_consume(folder: Path) -> float:
    """From subscribing to the last commit, with a commit after each pack."""
    with closing(_open(folder, "1")) as provider:
        _send_all(provider, messages())
        consumer = provider.consumer("bench")
        try:
            return rate(MESSAGES, lambda: _consume_all(consumer))
        finally:
            consumer.stop()


def _open(folder: Path, acks: Acks) -> LogProvider:
    provider = LogProvider(folder, acks=acks)
    provider.admin().create_topics([TopicSpec(PARTITION.full_topic_name)])
    return provider


def _send_all(provider: LogProvider, sent: list[QueueMessage]) -> None:
    acknowledgements = _Acknowledgements(len(sent))
    producer = provider.producer()
    for message in sent:
        producer.send(PARTITION, message, acknowledgements.take)
    acknowledgements.wait()


def _consume_all(consumer: QueueConsumer) -> None:
    partition = PARTITION.place
    consumer.subscribe([PARTITION])
    count = 0
    while records := consumer.poll(0):
        count += len(records)
        consumer.commit({partition: records[-1].offset + 1})
    check_count("log", count)


class _Acknowledgements:
    """Counts callbacks, which all come from the producer's one thread; the sender waits for the last."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._count = 0
        self._error: QueueError | None = None
        self._done = threading.Event()

    def take(self, _metadata: RecordMetadata | None, error: QueueError | None) -> None:
        self._error = self._error or error
        self._count += 1
        if self._count == self._expected:
            self._done.set()

    def wait(self) -> None:
        self._done.wait(FLUSH_TIMEOUT_S)
        if self._error is not None:
            raise self._error
        check_count("log", self._count, self._expected)
