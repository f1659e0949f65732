"""Exactly once on Kafka: members of a group send on what they get, and are killed or fall silent at any point."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore import Queues, open_queues
from queuecore.consuming.draining import Backlog
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ConsumerOptions
from queuecore.sending import send_and_wait
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.reliability.consumer_to_kill import ROOT, consumer_to_kill, kill
from tests.reliability.fleet import SEED
from tests.reliability.kafka_load import Load, out_of_order, stored, wait_until

PARTITIONS = 4
MEMBERS = 3
SESSION_MS = 2_000
# How long a group may take to go on without a member, on a busy machine.
PATIENCE_S = 120.0


class Site:
    """Two queues, and a group of processes that sends on from one to the other."""

    def __init__(self, queues: Queues, servers: str, folder: Path) -> None:
        unique = uuid4().hex[:8]
        self.queues = queues
        self.source, self.target, self.group = f"source-{unique}", f"target-{unique}", f"relay-{unique}"
        for queue in (self.source, self.target):
            queues.create(queue, PARTITIONS)
        self._servers = servers
        self._journal = folder / "journal"

    def member(self) -> AbstractContextManager["subprocess.Popen[bytes]"]:
        where = (f"--source={self.source}", f"--target={self.target}", f"--group={self.group}")
        program = ("kafka", self._servers, "exactly_once", str(self._journal), *where)
        return consumer_to_kill(*program, f"--session-ms={SESSION_MS}")

    def handled(self) -> int:
        """How many messages were given to a handler, those that came again included."""
        return self._journal.read_bytes().count(b"\n") if self._journal.exists() else 0

    def wait_for_progress(self, count: int) -> None:
        enough = self.handled() + count
        wait_until(lambda: self.handled() >= enough, PATIENCE_S)

    def wait_for_members(self, count: int) -> None:
        """Until so many share all partitions."""

        def is_shared() -> bool:
            found = self.queues.provider.admin().groups().get(self.group)
            held = [] if found is None else list(found.members.values())
            return len(held) == count and sum(map(len, held)) == PARTITIONS

        wait_until(is_shared, PATIENCE_S)

    def wait_for_end(self) -> None:
        places = [TopicPartitionInfo(self.source, number).place for number in range(PARTITIONS)]
        wait_until(Backlog(self.queues.provider, self.group, places).is_done, PATIENCE_S)

    def outputs(self) -> list[bytes]:
        targets = [TopicPartitionInfo(self.target, number) for number in range(PARTITIONS)]
        return stored(self.queues.provider, targets)


@pytest.fixture
def site(kafka_service: KafkaService, tmp_path: Path) -> Iterator[Site]:
    with open_queues("kafka", servers=kafka_service.bootstrap_servers) as queues:
        yield Site(queues, kafka_service.bootstrap_servers, tmp_path)


@pytest.mark.parametrize(
    "blows", [pytest.param(4, id="4 blows"), pytest.param(60, id="60 blows", marks=pytest.mark.full)]
)
def test_every_input_is_sent_on_once_and_in_order_whoever_falls(site: Site, blows: int) -> None:
    """Half of them are killed, the others wake when the group has gone on without them."""
    chance = random.Random(SEED)
    with ExitStack() as stack:
        members = [stack.enter_context(site.member()) for _ in range(MEMBERS)]
        with Load(site.queues, site.source) as load:
            for blow in range(blows):
                site.wait_for_progress(chance.randint(1, 300))
                victim = members.pop(chance.randrange(MEMBERS))
                if blow % 2:
                    os.kill(victim.pid, signal.SIGSTOP)
                    site.wait_for_members(MEMBERS - 1)
                    site.wait_for_progress(1)
                    os.kill(victim.pid, signal.SIGCONT)
                    members.append(victim)
                else:
                    kill(victim)
                    members.append(stack.enter_context(site.member()))
        site.wait_for_end()
    assert [member.returncode for member in members] == [0] * MEMBERS
    outputs = site.outputs()
    assert Counter(outputs) == Counter(load.acknowledged)
    assert out_of_order(outputs) == []


ZOMBIE = """
import sys
from queuecore.errors import QueueError
from queuecore.messages import QueueMessage
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import TopicPartitionInfo

servers, source, target, group, member_id, session_ms, stop_before = sys.argv[1:]
provider = KafkaProvider(servers, consuming=ConsumerOptions(session_timeout_ms=int(session_ms)))
info = TopicPartitionInfo(source)
producer = provider.transactional_producer(f"{source}-zombie")
consumer = provider.consumer(group, member_id=member_id or None)
consumer.subscribe([info])
while not (records := consumer.poll(100)):
    pass


def stop(where):
    if where == stop_before:
        print("stopped", flush=True)
        sys.stdin.readline()


try:
    with producer.begin() as transaction:
        transaction.send(TopicPartitionInfo(target), QueueMessage(None, b"of the zombie"))
        stop("offsets")
        transaction.commit_offsets(consumer, {info.place: records[-1].offset + 1})
        stop("commit")
    print("committed", flush=True)
except QueueError as error:
    print(error.code, flush=True)
"""


class Graveyard:
    """A source with one message, and a process that stands still in the middle of the transaction that sends it on."""

    def __init__(self, provider: KafkaProvider, servers: str) -> None:
        unique = uuid4().hex[:8]
        self.source, self.target = TopicPartitionInfo(f"source-{unique}"), TopicPartitionInfo(f"target-{unique}")
        self.group = f"zombie-{unique}"
        self.transactional_id = f"{self.source.full_topic_name}-zombie"
        self._provider = provider
        self._servers = servers
        provider.admin().create_topics(TopicSpec(info.full_topic_name) for info in (self.source, self.target))
        send_and_wait(provider.producer(), self.source, QueueMessage(None, b"input"), DEADLINE_S)

    @contextmanager
    def zombie(self, stop_before: str, member_id: str = "") -> Iterator["subprocess.Popen[str]"]:
        topics = (self.source.full_topic_name, self.target.full_topic_name)
        arguments = [self._servers, *topics, self.group, member_id, str(SESSION_MS), stop_before]
        command = [sys.executable, "-c", ZOMBIE, *arguments]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "stopped\n"
                os.kill(process.pid, signal.SIGSTOP)
                yield process
            finally:
                process.kill()

    def wake(self, zombie: "subprocess.Popen[str]") -> str:
        """What became of its transaction."""
        os.kill(zombie.pid, signal.SIGCONT)
        answer, _ = zombie.communicate("go on\n", timeout=DEADLINE_S)
        return answer.strip()

    def succeed(self, transactional_id: str, member_id: str = "") -> None:
        """Do what the zombie did not come to."""
        producer = self._provider.transactional_producer(transactional_id)
        consumer = self._provider.consumer(self.group, member_id=member_id or None)
        consumer.subscribe([self.source])
        [record] = wait_until(lambda: consumer.poll(100))
        with producer.begin() as transaction:
            transaction.send(self.target, QueueMessage(None, b"of the successor"))
            transaction.commit_offsets(consumer, {self.source.place: record.offset + 1})
        consumer.stop()
        producer.stop()

    def outputs(self) -> list[bytes]:
        return stored(self._provider, [self.target])


@pytest.fixture
def graveyard(kafka_service: KafkaService) -> Iterator[Graveyard]:
    options = ConsumerOptions(session_timeout_ms=SESSION_MS)
    with closing(KafkaProvider(kafka_service.bootstrap_servers, consuming=options)) as provider:
        yield Graveyard(provider, kafka_service.bootstrap_servers)


class TestZombies:
    """A process that stands still for longer than its session in the middle of a transaction."""

    def test_the_group_refuses_the_offsets_of_a_member_it_has_missed(self, graveyard: Graveyard) -> None:
        with graveyard.zombie(stop_before="offsets") as zombie:
            graveyard.succeed(f"{graveyard.transactional_id}-successor")
            assert graveyard.wake(zombie) == "not_owner"
        assert graveyard.outputs() == [b"of the successor"]

    def test_the_group_refuses_the_offsets_of_a_member_that_was_displaced(self, graveyard: Graveyard) -> None:
        with graveyard.zombie(stop_before="offsets", member_id="relay") as zombie:
            graveyard.succeed(f"{graveyard.transactional_id}-successor", member_id="relay")
            assert graveyard.wake(zombie) == "displaced"
        assert graveyard.outputs() == [b"of the successor"]

    def test_who_opens_its_transactional_id_need_not_wait_for_what_it_left_open(self, graveyard: Graveyard) -> None:
        with graveyard.zombie(stop_before="commit") as zombie:
            graveyard.succeed(graveyard.transactional_id)
            assert graveyard.wake(zombie) == "producer_fenced"
        assert graveyard.outputs() == [b"of the successor"]
