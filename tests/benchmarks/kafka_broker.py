"""One broker for all measurements on Kafka, each with a topic of its own."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from queuecore.config.queue_options import producer_options
from queuecore.config.queue_tree import QueueSettings
from queuecore.messages import PRODUCER_ID, TIMESTAMP, QueueMessage, encode_millis
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ProducerOptions
from queuecore.testing.services import KafkaService, ServiceError
from queuecore.topics import TopicPartitionInfo
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.workload import messages

# A second and more at the rates there are.
MESSAGES: Final = 200_000
# Of ours and of the bare loops: as a queue is configured when nothing is said, and for speed.
BY_DEFAULT: Final = producer_options(QueueSettings(type="kafka"))
LARGE_BATCHES: Final = ProducerOptions(acks="all", linger_ms=5, batch_size=1_000_000, buffer_memory=64 * 1024 * 1024)


class KafkaBroker:
    """A broker, or the reason why there is none."""

    def __init__(self, servers: str, unavailable: str = "") -> None:
        self._servers = servers
        self._unavailable = unavailable
        self._numbers = itertools.count()

    @property
    def is_available(self) -> bool:
        return not self._unavailable

    @property
    def servers(self) -> str:
        """NotAvailable where there is no broker."""
        if self._unavailable:
            raise NotAvailable(self._unavailable)
        return self._servers

    def new_name(self) -> str:
        return f"bench-{next(self._numbers)}"

    @contextmanager
    def topic(self) -> Iterator[TopicPartitionInfo]:
        """The one partition of a topic that nobody has used, and nobody will."""
        name = self.new_name()
        with closing(KafkaProvider(self.servers)) as provider:
            provider.admin().create_topics([TopicSpec(name, 1)])
            try:
                yield TopicPartitionInfo(name, 0, use_internal_partition=True)
            finally:
                provider.admin().delete_topics([name])


@contextmanager
def kafka_broker(folder: Path) -> Iterator[KafkaBroker]:
    service = KafkaService(folder)
    try:
        service.start()
    except ServiceError as error:
        yield KafkaBroker("", unavailable=str(error))
        return
    try:
        yield KafkaBroker(service.bootstrap_servers)
    finally:
        service.erase()


@cache
def kafka_messages(count: int = MESSAGES) -> Sequence[QueueMessage]:
    """With the headers that every message of a queue has."""
    headers = {PRODUCER_ID: b"benchmark-1", TIMESTAMP: encode_millis(1_750_000_000_000)}
    return [QueueMessage(key, data, headers) for key, data, _ in messages(count)]
