"""kill -9 of those who clean the log and of those who write to it meanwhile: nothing goes that had to stay."""

import random
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import pytest

from queuecore.clock import SYSTEM_CLOCK
from queuecore.errors import OffsetOutOfRange
from queuecore.messages import Key, QueueMessage, Record
from queuecore.providers.base import FOR_EVER, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import encode_body
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition
from tests.processes import Child
from tests.reliability.fleet import POINTS, keep_alive_and_kill

PLACE = ProviderPartition("cleaned", 0)
SEGMENT_BYTES = 15_000
KEYS = [b"key %d" % number for number in range(12)]
# Who cleans writes few batches, but renames, removes and brings to disk.
CLEANING_POINTS = {**POINTS, "rename": 6, "unlink": 12, "fsync": 6, "write": 40}


class Acknowledged(NamedTuple):
    offset: int
    key: bytes
    # Empty for a tombstone.
    data: bytes


def append(parent: Connection, root: Path, writer: int, chance: random.Random) -> None:
    """Messages with keys, some of which say that there is nothing under the key any more."""
    partition = PartitionWriter(root, PLACE, SEGMENT_BYTES)
    for number in range(60):
        batch = [message(f"{writer} {number} {index} ", chance) for index in range(chance.randint(1, 5))]
        # Of this moment, so that no tombstone is old enough to go: what is last under a key must be there.
        base = partition.append(encode_body(batch), SYSTEM_CLOCK.now_ms(), sync=chance.random() < 0.1)
        parent.send([Acknowledged(base + index, one.key, one.data) for index, one in enumerate(batch)])  # type: ignore[arg-type]


def message(name: str, chance: random.Random) -> QueueMessage:
    key = chance.choice(KEYS)
    if chance.random() < 0.1:
        return QueueMessage.tombstone(key)
    return QueueMessage(key, name.encode() + bytes(chance.choice([10, 100, 1_000])))


def clean(parent: Connection, root: Path, _: int, chance: random.Random) -> None:
    with closing(LogProvider(root)) as provider:
        for _ in range(30):
            provider.admin().clean()
            parent.send([])


def as_bytes(key: Key) -> bytes:
    assert isinstance(key, bytes)
    return key


def tail(parent: Connection, root: Path) -> None:
    """Read all the while, and go on at the beginning where retention was faster; tell what was seen."""
    seen: list[Acknowledged] = []
    with closing(PartitionReader(root, PLACE)) as reader:
        position, is_last = 0, False
        while not is_last:
            is_last = parent.poll()
            heard = reader.bell.heard()
            try:
                while records := reader.read(position, 10):
                    seen += [Acknowledged(record.offset, as_bytes(record.key), record.data) for record in records]
                    position = reader.next_offset
            except OffsetOutOfRange as error:
                position = error.fields["beginning"]
            if not is_last:
                reader.bell.wait(heard, 0.02)
    parent.send(seen)


def create(root: Path, spec: TopicSpec) -> None:
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([spec])


def read(root: Path) -> Iterator[Record]:
    with closing(PartitionReader(root, PLACE)) as reader:
        yield from reader.read(reader.beginning(), 1_000_000)


class Story(NamedTuple):
    acknowledged: dict[int, Acknowledged]
    seen: list[Acknowledged]

    def last_of(self, key: bytes) -> Acknowledged | None:
        """The last that was stored under a key, as far as anybody knows: also what its writer did not live to hear
        of."""
        return max((one for one in (*self.acknowledged.values(), *self.seen) if one.key == key), default=None)


def write_and_clean(root: Path, kills: int) -> Story:
    """Two writers and one who cleans, until so many of them died; then an undisturbed cleaning."""
    with Child(tail, root) as tailing:
        told = keep_alive_and_kill(root, [append, clean, append], kills, CLEANING_POINTS)
        with closing(LogProvider(root)) as provider:
            with closing(PartitionWriter(root, PLACE)) as writer:
                writer.roll()
            provider.admin().clean()
        tailing.say("that was all")
        seen = tailing.hear()
    return Story({one.offset: one for acks in told for one in acks}, seen)


@pytest.fixture(params=[60, pytest.param(600, marks=pytest.mark.full)], ids=lambda count: f"{count} kills")
def kills(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


def check_seen(story: Story) -> None:
    offsets = [one.offset for one in story.seen]
    assert offsets == sorted(set(offsets)), "a reader saw one twice, or out of order"
    for seen in story.seen:
        assert story.acknowledged.get(seen.offset, seen) == seen


def test_retention_takes_the_oldest_and_nothing_else(tmp_path: Path, kills: int) -> None:
    create(tmp_path, TopicSpec(PLACE.topic, retention_ms=FOR_EVER, retention_bytes=4 * SEGMENT_BYTES))
    story = write_and_clean(tmp_path, kills)
    records = {record.offset: record for record in read(tmp_path)}
    beginning = min(records, default=0)
    assert beginning > 0, "retention should have removed something"
    assert list(records) == list(range(beginning, beginning + len(records)))
    for offset, one in story.acknowledged.items():
        if offset >= beginning:
            assert (records[offset].key, records[offset].data) == (one.key, one.data)
    check_seen(story)


def test_compaction_keeps_the_last_of_each_key(tmp_path: Path, kills: int) -> None:
    create(tmp_path, TopicSpec(PLACE.topic, cleanup="compact"))
    story = write_and_clean(tmp_path, kills)
    records = list(read(tmp_path))
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets))
    assert len(records) < len(story.acknowledged) / 2, "compaction should have removed most"
    by_offset = {record.offset: record for record in records}
    for offset, one in story.acknowledged.items():
        if offset in by_offset:
            assert (by_offset[offset].key, by_offset[offset].data) == (one.key, one.data)
    for key in KEYS:
        if (last := story.last_of(key)) is not None:
            check_last(last, [record for record in records if record.key == key])
    check_seen(story)


def check_last(last: Acknowledged, left: list[Record]) -> None:
    """The last that is left under a key is its last value or tombstone, or a later one whose writer died before it was
    acknowledged."""
    assert left, "the last value is gone"
    assert left[-1].offset >= last.offset, "an older value came back"


def test_a_record_gets_an_offset_of_its_own_after_all_that(tmp_path: Path) -> None:
    create(tmp_path, TopicSpec(PLACE.topic, cleanup="compact,delete", retention_bytes=SEGMENT_BYTES, retention_ms=-1))
    story = write_and_clean(tmp_path, 20)
    with closing(PartitionWriter(tmp_path, PLACE)) as writer:
        offset = writer.append(encode_body([QueueMessage(b"k", b"new")]), 0, sync=True)
    assert offset > max(story.acknowledged)
    *_, last = read(tmp_path)
    assert (last.offset, last.data) == (offset, b"new")
