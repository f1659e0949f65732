"""What every benchmark of the `log` provider does with it."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from queuecore.messages import QueueMessage
from queuecore.providers.base import QueueConsumer, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.options import Acks, ProducerOptions
from queuecore.topics import TopicPartitionInfo
from tests.benchmarks.acknowledging import send_and_count
from tests.benchmarks.workload import Tally

TOPIC = "bench"
GROUP = "bench"
POLL_MS = 1_000


def partition(number: int) -> TopicPartitionInfo:
    return TopicPartitionInfo(TOPIC, number, use_internal_partition=True)


FIRST = partition(0)


@contextmanager
def opened(folder: Path, acks: Acks = "1", partitions: int = 1) -> Iterator[LogProvider]:
    """The log in this folder, with a topic of so many partitions."""
    with closing(LogProvider(folder, ProducerOptions(acks=acks))) as provider:
        provider.admin().create_topics([TopicSpec(TOPIC, partitions)])
        yield provider


@contextmanager
def subscribed(provider: LogProvider, info: TopicPartitionInfo = FIRST) -> Iterator[QueueConsumer]:
    consumer = provider.consumer(GROUP)
    consumer.subscribe([info])
    try:
        yield consumer
    finally:
        consumer.stop()


def send_all(provider: LogProvider, sent: Sequence[QueueMessage], info: TopicPartitionInfo = FIRST) -> None:
    """From the first send to the last acknowledgement."""
    send_and_count(provider.producer(), info, sent)


def consume_all(consumer: QueueConsumer, tally: Tally, info: TopicPartitionInfo = FIRST) -> None:
    """To the last commit, with a commit after each pack."""
    place = info.place
    while not tally.is_complete and (records := consumer.poll(POLL_MS)):
        tally.take([record.data for record in records])
        consumer.commit({place: records[-1].offset + 1})
    tally.check()
