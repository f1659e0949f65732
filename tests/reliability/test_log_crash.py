"""kill -9 of writers at random points: what was acknowledged is there, once and in order, and all readers agree."""

import os
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import pytest

from queuecore.errors import QueueError
from queuecore.messages import QueueMessage, Record, RecordMetadata
from queuecore.providers.base import DAY_MS, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.writer import PartitionWriter
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("crash", 0)
PLACE = INFO.place
SEGMENT_BYTES = 400_000
KILLS = [pytest.param(15, id="15 kills"), pytest.param(200, id="200 kills", marks=pytest.mark.full)]


class Acknowledged(NamedTuple):
    writer: int
    number: int
    offset: int


def message(writer: int, number: int, noise: random.Random) -> QueueMessage:
    """Mostly small; now and then so large that the kernel can be stopped in the middle of writing it."""
    size = noise.choice([10, 100, 1_000, 50_000, 200_000])
    return QueueMessage(None, f"{writer} {number} ".encode() + bytes(size))


def append_directly(root: Path, writer: int, acknowledged: Connection) -> None:
    """Append batch after batch to small segments, so that kills hit rolls too."""
    noise = random.Random(writer)
    number = 0
    partition = PartitionWriter(root, PLACE, SEGMENT_BYTES)
    while True:
        batch = [message(writer, number + index, noise) for index in range(noise.randint(1, 3))]
        base = partition.append(batch, 0, sync=noise.random() < 0.2, retention_ms=DAY_MS)
        acknowledged.send([Acknowledged(writer, number + index, base + index) for index in range(len(batch))])
        number += len(batch)


def send_through_a_provider(root: Path, writer: int, acknowledged: Connection) -> None:
    """Send as a program does, many at once, and tell of each when its callback comes."""
    noise = random.Random(writer)
    room = threading.Semaphore(20)

    def answer_to(number: int) -> Callable[[RecordMetadata | None, QueueError | None], None]:
        def answer(metadata: RecordMetadata | None, error: QueueError | None) -> None:
            room.release()
            if metadata is None:
                os._exit(1)
            acknowledged.send([Acknowledged(writer, number, metadata.offset)])

        return answer

    producer = LogProvider(root).producer()
    number = 0
    while True:
        room.acquire()
        producer.send(INFO, message(writer, number, noise), answer_to(number))
        number += 1


Writing = Callable[[Path, int, Connection], None]


class Writer:
    """A process that writes until it is killed. Forked before anything is opened in it."""

    def __init__(self, root: Path, number: int, write: Writing) -> None:
        fork = get_context("fork")
        self._told, telling = fork.Pipe(duplex=False)
        self.process: BaseProcess = fork.Process(target=write, args=(root, number, telling), daemon=True)
        self.process.start()
        telling.close()
        self.acknowledged: list[Acknowledged] = []

    def listen_until(self, count: int) -> None:
        """Hear that many acknowledgements."""
        while len(self.acknowledged) < count:
            assert self._told.poll(DEADLINE_S), "the writer went silent"
            self.acknowledged += self._told.recv()

    def kill(self) -> None:
        """kill -9, then hear what it had said before."""
        assert self.process.is_alive()
        self.process.kill()
        self.process.join()
        try:
            while True:
                self.acknowledged += self._told.recv()
        except EOFError:
            self._told.close()


@contextmanager
def tailing(root: Path) -> Iterator[list[Record]]:
    """What a reader sees that reads all the while."""
    seen: list[Record] = []
    done = threading.Event()
    with closing(PartitionReader(root, PLACE)) as reader:

        def tail() -> None:
            while not done.is_set() or len(seen) < reader.end():
                seen.extend(reader.read(len(seen), 7))

        thread = threading.Thread(target=tail)
        thread.start()
        try:
            yield seen
        finally:
            done.set()
            wait_until(lambda: not thread.is_alive() or len(seen) >= reader.end())
            thread.join(DEADLINE_S)


def check(records: list[Record], acknowledged: list[Acknowledged]) -> None:
    assert [record.offset for record in records] == list(range(len(records)))
    written: dict[int, list[int]] = defaultdict(list)
    for record in records:
        writer, number, _ = record.data.split(b" ", 2)
        written[int(writer)].append(int(number))
    for numbers in written.values():
        assert numbers == list(range(len(numbers))), "a message is missing, twice there, or out of order"
    for one in acknowledged:
        assert records[one.offset].data.startswith(b"%d %d " % (one.writer, one.number))


@pytest.mark.parametrize("write", [append_directly, send_through_a_provider])
@pytest.mark.parametrize("kills", KILLS)
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path: Path, kills: int, write: Writing) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
    chance = random.Random(os.environ.get("SWITCHYARD_TEST_SEED", "7"))
    acknowledged: list[Acknowledged] = []
    with tailing(tmp_path) as seen:
        writers = [Writer(tmp_path, number, write) for number in range(2)]
        for number in range(2, kills + 2):
            victim = writers.pop(chance.randrange(2))
            victim.listen_until(chance.randint(1, 12))
            victim.kill()
            acknowledged += victim.acknowledged
            writers.append(Writer(tmp_path, number, write))
        for writer in writers:
            writer.listen_until(1)
            writer.kill()
            acknowledged += writer.acknowledged
        with closing(PartitionWriter(tmp_path, PLACE)) as mender:
            mender.recover()

    with closing(PartitionReader(tmp_path, PLACE)) as reader:
        records = reader.read(0, 1_000_000)
    assert len(acknowledged) >= kills
    check(records, acknowledged)
    assert [(one.offset, one.data) for one in seen] == [(one.offset, one.data) for one in records]
