"""Events as an installation with a thousand partitions reports them, in a log of their own.

Each partition is sampled every five seconds; a sixth of them is busy in each ten seconds, and tells of what was
consumed and sent. Of 14 events 12 are samples of offsets, which are short, and 2 are not.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import UUID

from queuecore.messages import QueueMessage
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import (
    ConsumedSample,
    EntityShare,
    Event,
    OffsetSample,
    SentSample,
    TenantShare,
)
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import encode_body
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition
from tests.benchmarks.processes import run_together
from tests.benchmarks.workload import BATCH

QUEUES: Final = 20
PARTITIONS: Final = 50
EVENTS_A_MINUTE: Final = QUEUES * PARTITIONS * 14

# The key of the field; its length follows in one byte, as it is below 128.
_OFFSET_SAMPLE: Final = bytes((Event.OFFSET_SAMPLE_FIELD_NUMBER << 3 | 2,))
_SAMPLED_MS: Final = 5_000
_BOUNDS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


def queue_id(number: int) -> UUID:
    return UUID(int=number + 1, version=4)


def create_log(root: Path) -> None:
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([TopicSpec(METRICS_TOPIC, METRICS_PARTITIONS)])


def fill_log(root: Path, events: int, end_ms: int, partitions: range = range(METRICS_PARTITIONS)) -> None:
    """Add these partitions' part of so many events, which end at about this time."""
    for partition in partitions:
        _fill(root, partition, events // METRICS_PARTITIONS, end_ms)


def fill_large_log(root: Path, events: int, end_ms: int) -> None:
    """The same by two processes."""
    create_log(root)
    halves = [range(number, METRICS_PARTITIONS, 2) for number in range(2)]
    run_together([partial(_filling, root, events, end_ms, half) for half in halves])


@contextmanager
def _filling(root: Path, events: int, end_ms: int, partitions: range) -> Iterator[Callable[[], None]]:
    yield partial(fill_log, root, events, end_ms, partitions)


def _fill(root: Path, partition: int, count: int, end_ms: int) -> None:
    start_ms = end_ms - count * METRICS_PARTITIONS * 60_000 // EVENTS_A_MINUTE
    made = islice(_events(partition, start_ms), count)
    with closing(PartitionWriter(root, ProviderPartition(METRICS_TOPIC, partition))) as writer:
        while messages := [QueueMessage(None, data) for data in islice(made, BATCH)]:
            writer.append(encode_body(messages), time.time_ns() // 1_000_000, sync=False)


def _events(mine: int, start_ms: int) -> Iterator[bytes]:
    """Those of every fourth of the queues' partitions, which is what one partition of the topic has. What does not
    change from one time to the next is serialised once: parts of a message that are put together are the message."""
    numbers = range(mine, QUEUES * PARTITIONS, METRICS_PARTITIONS)
    places = [divmod(number, PARTITIONS) for number in numbers]
    named = [_named(*place).SerializeToString() for place in places]
    busy = [(_within("consumed_sample", _consumed(*place)), _within("sent_sample", _sent(*place))) for place in places]
    at_ms, turn = start_ms, 0
    while True:
        head = Event(version=1, at_ms=at_ms, service_id="tb-rule-engine-1").SerializeToString()
        for index, number in enumerate(numbers):
            end = turn * 100 + number
            body = named[index] + _offsets(end, end - number % 90)
            yield head + _OFFSET_SAMPLE + bytes((len(body),)) + body
            if (index + turn) % 12 == 0:
                consumed, sent = busy[index]
                yield head + consumed
                yield head + sent
        at_ms, turn = at_ms + _SAMPLED_MS, turn + 1


def _within(field: str, body: ConsumedSample | SentSample) -> bytes:
    """As it stands in an event."""
    return Event(**{field: body}).SerializeToString()


def _offsets(end: int, committed: int) -> bytes:
    return OffsetSample(end_offset=end, committed_offset=max(0, committed)).SerializeToString()


def _named(queue: int, partition: int) -> OffsetSample:
    return OffsetSample(
        queue_id=str(queue_id(queue)),
        partition=partition,
        topic=f"bench{queue}.{partition}",
        group=f"tb_rule_engine_bench{queue}-consumer-{partition}",
    )


def _consumed(queue: int, partition: int) -> ConsumedSample:
    tenants = [str(queue_id(1000 + number)) for number in range(3)]
    return ConsumedSample(
        queue_id=str(queue_id(queue)),
        partition=partition,
        topic=f"bench{queue}.{partition}",
        group=f"tb_rule_engine_bench{queue}-consumer-{partition}",
        interval_ms=10_000,
        polled=1_000,
        polled_bytes=100_000,
        packs=10,
        commits=10,
        succeeded=1_000,
        handled=1_000,
        processing_bounds_ms=_BOUNDS,
        processing_buckets=[100] * (len(_BOUNDS) + 1),
        processing_total_ms=12_345.0,
        tenants=[TenantShare(tenant_id=tenant, messages=333, bytes=33_333) for tenant in tenants],
        entities=[
            EntityShare(key=queue_id(number).bytes, is_uuid=True, tenant_id=tenants[0], messages=50)
            for number in range(5)
        ],
    )


def _sent(queue: int, partition: int) -> SentSample:
    tenant = TenantShare(tenant_id=str(queue_id(1000)), messages=1_000, bytes=100_000)
    topic = f"bench{queue}.{partition}"
    return SentSample(topic=topic, partition=0, interval_ms=10_000, sent=1_000, sent_bytes=100_000, tenants=[tenant])
