"""Exactly once: processes read, transform and write in transactions, and die of kill -9 at the worst points."""

import random
from collections import defaultdict
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from queuecore.errors import NotOwner, ProducerFenced
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.sending import send
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.processes import Child
from tests.reliability.fleet import Work, keep_alive_and_kill

PARTITIONS = 3
GROUP = "copiers"
# Fewer than there are processes at a time: some fence each other.
IDS = 2
IN = [TopicPartitionInfo("in", number, use_internal_partition=True) for number in range(PARTITIONS)]
OUT = [TopicPartitionInfo("out", number, use_internal_partition=True) for number in range(PARTITIONS)]
# Where they die, and within how many calls.
POINTS = {
    "write": 20,
    "sync": 12,
    "publish": 20,
    "begin a transaction": 4,
    "finish a transaction": 4,
    "ring": 4,
    "settle in the group": 3,
}
FEW = ConsumerOptions(max_poll_records=7)


def copy(parent: Connection, root: Path, number: int, chance: random.Random) -> None:
    """Pack by pack: take, number by partition, write to two partitions, commit with the offsets."""
    provider = LogProvider(root, ProducerOptions(acks=chance.choice(["1", "all"])), FEW)
    producer = provider.transactional_producer(f"copier {number % IDS}")
    consumer = provider.consumer(GROUP, "in")
    consumer.subscribe()
    copied = 0
    for _ in range(40):
        records = consumer.poll(20)
        if not records:
            continue
        try:
            with producer.begin() as transaction:
                for record in records:
                    message = QueueMessage(None, b"%d %s" % (record.partition, record.data))
                    transaction.send(OUT[record.partition], message)
                    transaction.send(OUT[(record.partition + 1) % PARTITIONS], message)
                ends = {IN[record.partition].place: record.offset + 1 for record in records}
                transaction.commit_offsets(consumer, ends)
        except (NotOwner, ProducerFenced):
            return
        copied += len(records)
        parent.send(copied)


def tail(parent: Connection, root: Path) -> None:
    """See committed records as they come, and that both copies of one are there or neither."""
    with closing(LogProvider(root)) as provider, closing(provider.reader()) as reader:
        seen: list[list[bytes]] = [[] for _ in OUT]
        positions = [0] * PARTITIONS
        is_last = False
        while not is_last:
            is_last = parent.poll()
            for number, info in enumerate(OUT):
                while records := reader.read(info.place, positions[number], 100):
                    seen[number] += [record.data for record in records]
                    positions[number] = records[-1].offset + 1
    parent.send(seen)


@pytest.mark.parametrize(
    ("works", "kills"),
    [
        pytest.param([copy] * 3, 45, id="45 kills"),
        pytest.param([copy] * 3, 450, id="450 kills", marks=pytest.mark.full),
    ],
)
def test_every_input_is_copied_once_and_in_order_whoever_dies(tmp_path: Path, works: list[Work], kills: int) -> None:
    count = kills * 30
    with closing(LogProvider(tmp_path, ProducerOptions(acks="1", linger_ms=5))) as provider:
        provider.admin().create_topics([TopicSpec("in", PARTITIONS), TopicSpec("out", PARTITIONS)])
        producer = provider.producer()
        futures = [send(producer, info, QueueMessage(None, b"%d" % n)) for n in range(count) for info in IN]
        assert all(future.result(DEADLINE_S).offset >= 0 for future in futures)
    with Child(tail, tmp_path) as tailing:
        progress = keep_alive_and_kill(tmp_path, works, kills, POINTS)
        assert len(progress) > kills, "they should have come to something before they died"
        with closing(LogProvider(tmp_path)) as provider:
            # What the dead left open is aborted: until then nobody sees what is behind it.
            for number in range(IDS):
                provider.transactional_producer(f"copier {number}").stop()
            committed = provider.admin().committed_offsets({GROUP: [info.place for info in IN]})[GROUP]
            check(provider, [committed.get(info.place, 0) for info in IN])
            finish(provider)
            check(provider, [count] * PARTITIONS)
            outputs = [read(provider, info) for info in OUT]
        tailing.say("that was all")
        assert tailing.hear() == outputs, "who read all the while has seen the same"


def check(provider: LogProvider, offsets: list[int]) -> None:
    """What is committed of the inputs, and nothing else, is in the outputs: once, in order, in both copies."""
    for number, info in enumerate(OUT):
        by_source: dict[int, list[int]] = defaultdict(list)
        for data in read(provider, info):
            source, value = map(int, data.split())
            by_source[source].append(value)
        for source in (number, (number - 1) % PARTITIONS):
            assert by_source[source] == list(range(offsets[source]))
        assert set(by_source) <= {number, (number - 1) % PARTITIONS}


def read(provider: LogProvider, info: TopicPartitionInfo) -> list[bytes]:
    with closing(provider.reader()) as reader:
        return [record.data for record in reader.read(info.place, 0, 10_000_000)]


def finish(provider: LogProvider) -> None:
    """Copy the rest, undisturbed."""
    producer = provider.transactional_producer("copier 0")
    consumer = provider.consumer(GROUP, "in")
    consumer.subscribe()
    idle = 0
    while idle < 3 or len(consumer.partitions) < PARTITIONS:
        records = consumer.poll(100)
        idle = 0 if records else idle + 1
        with producer.begin() as transaction:
            for record in records:
                message = QueueMessage(None, b"%d %s" % (record.partition, record.data))
                transaction.send(OUT[record.partition], message)
                transaction.send(OUT[(record.partition + 1) % PARTITIONS], message)
            transaction.commit_offsets(consumer, {IN[one.partition].place: one.offset + 1 for one in records})
    consumer.stop()
    producer.stop()
