"""What the benchmarks do with the `kafka` provider."""

from collections.abc import Sequence
from contextlib import closing

from queuecore.messages import QueueMessage
from queuecore.providers.base import QueueConsumer
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ProducerOptions
from queuecore.topics import TopicPartitionInfo
from tests.benchmarks.acknowledging import send_and_count
from tests.benchmarks.workload import Tally, rate, rate_behind_first

_POLL_MS = 10_000


def produce_rate(
    servers: str, producing: ProducerOptions, info: TopicPartitionInfo, sent: Sequence[QueueMessage]
) -> float:
    """Messages per second, from the first send to the last acknowledgement."""
    with closing(KafkaProvider(servers, producing=producing)) as provider:
        return rate(len(sent), lambda: send_and_count(provider.producer(), info, sent))


def consume_rate(servers: str, info: TopicPartitionInfo, messages: int) -> float:
    """Messages per second behind the first pack, which comes once the group is joined; with a commit for each pack."""
    tally = Tally("kafka", messages)
    with closing(KafkaProvider(servers)) as provider:
        consumer = provider.consumer(f"ours-{info.full_topic_name}")
        consumer.subscribe([info])
        try:
            while not tally.count:
                _take_pack(consumer, tally, info)
            return rate_behind_first(tally, messages, lambda: _take_pack(consumer, tally, info))
        finally:
            consumer.stop()


def _take_pack(consumer: QueueConsumer, tally: Tally, info: TopicPartitionInfo) -> None:
    pack = consumer.poll(_POLL_MS)
    data = []
    for record in pack:
        _where = record.topic, record.partition, record.offset
        _read = record.timestamp_ms, record.key, record.headers
        data.append(record.data)
    if pack:
        tally.take(data)
        consumer.commit({info.place: pack[-1].offset + 1})
