"""kill -9 of writers at the worst points: what was acknowledged is there, once and in order, and all readers agree."""

import random
import threading
import zlib
from collections import defaultdict
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import pytest

from queuecore.errors import QueueError
from queuecore.messages import QueueMessage, Record, RecordMetadata
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import encode_body
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.times import offset_for_time
from queuecore.providers.log.writer import PartitionWriter
from queuecore.providers.options import ProducerOptions
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.processes import Child
from tests.reliability.fleet import SEED, Work, keep_alive_and_kill

INFO = TopicPartitionInfo("crash", 0)
PLACE = INFO.place
# So small that kills hit rolls too.
SEGMENT_BYTES = 30_000


class Acknowledged(NamedTuple):
    writer: int
    number: int
    offset: int


class Written(NamedTuple):
    """What a message says of itself: whose it is, which one, and which of its batch."""

    writer: int
    number: int
    index: int
    of: int


def message(one: Written, chance: random.Random) -> QueueMessage:
    """Mostly small; now and then so large that a write of it takes the kernel a while."""
    size = chance.choice([0, 10, 10, 100, 100, 1_000, 5_000, 60_000])
    head = " ".join(map(str, one)).encode() + b" "
    return QueueMessage(None, head + random.Random(zlib.crc32(head)).randbytes(size))


def written(record: Record) -> Written:
    *head, noise = record.data.split(b" ", len(Written._fields))
    raw = b" ".join(head) + b" "
    assert noise == random.Random(zlib.crc32(raw)).randbytes(len(noise)), "bytes are not those that were sent"
    return Written(*map(int, head))


# --- writers


def append_directly(parent: Connection, root: Path, writer: int, chance: random.Random) -> None:
    """Batch after batch, with and without waiting for the disk."""
    number = 0
    partition = PartitionWriter(root, PLACE, SEGMENT_BYTES)
    for _ in range(40):
        count = chance.randint(1, 3)
        batch = [message(Written(writer, number + index, index, count), chance) for index in range(count)]
        compression = chance.choice(["none", "none", "lz4", "zstd"])
        base = partition.append(encode_body(batch, compression), chance.randint(0, 1_000), sync=chance.random() < 0.3)
        parent.send([Acknowledged(writer, number + index, base + index) for index in range(count)])
        number += count


def send_through_a_provider(parent: Connection, root: Path, writer: int, chance: random.Random) -> None:
    """As a program does, many at once, and tell of each when its callback comes."""
    telling = threading.Lock()

    def send(number: int) -> None:
        def answer(metadata: RecordMetadata | None, error: QueueError | None) -> None:
            assert metadata is not None, error
            with telling:
                parent.send([Acknowledged(writer, number, metadata.offset)])

        producer.send(INFO, message(Written(writer, number, 0, 1), chance), answer)

    options = ProducerOptions(acks=chance.choice(["1", "all"]), linger_ms=chance.choice([0, 0, 2]))
    producer = LogProvider(root, options).producer()
    for number in range(60):
        send(number)
    assert producer.flush(DEADLINE_S)


# --- what was seen


def tail(parent: Connection, root: Path) -> None:
    """Read all the while, and tell what was seen once the parent says where it ends."""
    seen: list[tuple[int, int]] = []
    with closing(PartitionReader(root, PLACE)) as reader:
        while not parent.poll():
            heard = reader.bell.heard()
            records = reader.read(len(seen), 7)
            seen += [(record.offset, zlib.crc32(record.data)) for record in records]
            if not records:
                reader.bell.wait(heard, 0.05)
        end = parent.recv()
        while len(seen) < end and (records := reader.read(len(seen), 1_000)):
            seen += [(record.offset, zlib.crc32(record.data)) for record in records]
    parent.send(seen)


def check(records: list[Record], acknowledged: list[Acknowledged]) -> None:
    """What was acknowledged is where it was said to be; nothing is there by halves, twice or out of order."""
    assert [record.offset for record in records] == list(range(len(records)))
    numbers: dict[int, list[int]] = defaultdict(list)
    expected: Written | None = None
    for record in records:
        one = written(record)
        numbers[one.writer].append(one.number)
        assert expected in (None, one), "a batch is there by halves"
        expected = None if one.index + 1 == one.of else one._replace(number=one.number + 1, index=one.index + 1)
    assert expected is None
    for writer, found in numbers.items():
        assert found == list(range(len(found))), f"of writer {writer}, one is missing, twice there, or out of order"
    for ack in acknowledged:
        one = written(records[ack.offset])
        assert (one.writer, one.number) == (ack.writer, ack.number)


def check_seeking(root: Path, records: list[Record]) -> None:
    """Other readers see the same, wherever they begin."""
    chance = random.Random(SEED)
    with closing(PartitionReader(root, PLACE)) as reader:
        for _ in range(200):
            start, count = chance.randrange(len(records)), chance.randint(1, 20)
            assert reader.read(start, count) == records[start : start + count]
        for time_ms in range(0, 1_001, 50):
            first = next((one.offset for one in records if one.timestamp_ms >= time_ms), len(records))
            assert offset_for_time(root, PLACE, reader, time_ms) == first


@pytest.mark.parametrize(
    ("works", "count"),
    [
        pytest.param([append_directly] * 3, 140, id="direct, 140 kills"),
        pytest.param([send_through_a_provider, append_directly], 70, id="mixed, 70 kills"),
        pytest.param([append_directly] * 3, 1_400, id="direct, 1400 kills", marks=pytest.mark.full),
        pytest.param([send_through_a_provider, append_directly], 700, id="mixed, 700 kills", marks=pytest.mark.full),
    ],
)
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path: Path, works: list[Work], count: int) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
    with Child(tail, tmp_path) as tailing:
        acknowledged = [one for acks in keep_alive_and_kill(tmp_path, works, count) for one in acks]
        with closing(PartitionWriter(tmp_path, PLACE)) as mender:
            mender.recover()
        with closing(PartitionReader(tmp_path, PLACE)) as reader:
            records = reader.read(0, 1_000_000)
        tailing.say(len(records))
        seen = tailing.hear()
    assert len(acknowledged) > count, "they should have come to something before they died"
    check(records, acknowledged)
    assert seen == [(record.offset, zlib.crc32(record.data)) for record in records]
    check_seeking(tmp_path, records)
