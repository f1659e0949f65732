"""kill -9 of consumers that remember something: with `exactly_once` every message counts once, in their state and in
what they send."""

import random
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore import Queues, Record, open_queues
from queuecore.consuming.draining import Backlog
from queuecore.consuming.giving_up import KILLED
from queuecore.messages import Key
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.reliability.consumer_to_kill import kill
from tests.reliability.counter_to_kill import GROUP, TOTAL, counter_to_kill
from tests.reliability.fleet import SEED

PARTITIONS = 3
ENTITIES = 17
# How long a group may take to go on without a member, on a busy machine.
PATIENCE_S = 120.0


class Site:
    """A queue, its counters' state, and what they send."""

    def __init__(self, queues: Queues, journal: Path, submit: str, *where: str) -> None:
        self.queues = queues
        self.queue = f"in-{uuid4().hex[:8]}"
        self.published: Counter[Key] = Counter()
        for name, cleanup in {"": "delete", "-out": "delete", "-state": "compact"}.items():
            queues.create(self.queue + name, PARTITIONS, cleanup=cleanup)  # type: ignore[arg-type]
        self._journal = journal
        self._submit, self._where = submit, where

    def publish(self, count: int) -> None:
        for number in range(self.published.total(), self.published.total() + count):
            entity = b"%d" % (number % ENTITIES)
            self.queues.publish(self.queue, entity, b"one more")
            self.published[entity] += 1
        assert self.queues.flush(DEADLINE_S)

    def counter(self) -> AbstractContextManager["subprocess.Popen[bytes]"]:
        provider, where, *options = self._where
        return counter_to_kill(provider, where, self.queue, self._submit, str(self._journal), *options)

    def handled(self) -> int:
        return self._journal.stat().st_size if self._journal.exists() else 0

    def crash(self, kills: int) -> None:
        """Two counters share the partitions; one after the other is killed at any point."""
        chance = random.Random(SEED)
        with ExitStack() as stack:
            running = [stack.enter_context(self.counter()) for _ in range(2)]
            for _ in range(kills):
                enough = self.handled() + chance.randint(1, 300)
                self.publish(400)
                wait_until(lambda enough=enough: self.handled() >= enough, PATIENCE_S)
                kill(running.pop(chance.randrange(2)))
                running.append(stack.enter_context(self.counter()))
            places = [TopicPartitionInfo(self.queue, number).place for number in range(PARTITIONS)]
            wait_until(Backlog(self.queues.provider, GROUP, places).is_done, PATIENCE_S)
        assert [one.returncode for one in running] == [0, 0]

    def records(self, name: str) -> Iterator[Record]:
        """What is committed in the queue of this name, partition by partition."""
        with closing(self.queues.provider.reader()) as reader:
            for number in range(PARTITIONS):
                place, at = TopicPartitionInfo(self.queue + name, number).place, 0
                while records := reader.read(place, at, 1_000):
                    yield from records
                    at = records[-1].offset + 1

    def blamed(self, kills: int) -> Counter[Key]:
        """How many messages of each entity became letters. Of a process that is killed again, what it was alone with
        then is blamed; nothing else is a reason here."""
        letters = list(self.queues.dead_letters(self.queue))
        assert {letter.story.reason for letter in letters} <= {KILLED}
        assert len(letters) < kills
        return Counter(letter.message.key for letter in letters)

    def check(self, kills: int) -> None:
        counted = self.published - self.blamed(kills)
        state = {(one.topic, one.key): int(one.data) for one in self.records("-state") if not one.is_tombstone}
        totals = [number for (_, key), number in state.items() if key == TOTAL]
        assert sum(totals) == counted.total()
        assert {key: number for (_, key), number in state.items() if key != TOTAL} == counted
        sent: defaultdict[object, list[int]] = defaultdict(list)
        for one in self.records("-out"):
            sent[one.key].append(int(one.data))
        keeps_order = self._submit == "SEQUENTIAL_BY_ORIGINATOR"
        for entity, count in counted.items():
            assert (sent[entity] if keeps_order else sorted(sent[entity])) == list(range(1, count + 1))


@pytest.mark.parametrize("submit", ["SEQUENTIAL_BY_ORIGINATOR", "BURST"])
@pytest.mark.parametrize(
    "kills", [pytest.param(4, id="4 kills"), pytest.param(60, id="60 kills", marks=pytest.mark.full)]
)
def test_every_message_counts_once_on_the_log(tmp_path: Path, submit: str, kills: int) -> None:
    with open_queues("log", folder=tmp_path / "log") as queues:
        site = Site(queues, tmp_path / "journal", submit, "log", str(tmp_path / "log"))
        site.crash(kills)
        site.check(kills)


def test_every_message_counts_once_on_kafka(tmp_path: Path, kafka_service: KafkaService) -> None:
    servers = kafka_service.bootstrap_servers
    with open_queues("kafka", servers=servers) as queues:
        site = Site(queues, tmp_path / "journal", "SEQUENTIAL_BY_ORIGINATOR", "kafka", servers, "--session-ms=2000")
        site.crash(4)
        site.check(4)
