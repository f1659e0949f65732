"""Kafka's own consumer group, cooperative-sticky: members in processes of their own, that can be killed.

Run as a program, this is a member.
"""

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, Producer

from queueapi.supervisor.child import die_with_parent
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.testing.services import KafkaService, ServiceError
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.takeover import EVERY_S, PARTITIONS, Figures, play
from tests.reliability.cluster_hosting import ROOT
from tests.reliability.journal import Begun, Journal
from tests.reliability.kafka_load import Background

# Sessions may be as short as our leases.
_SETTINGS: Final = {"group.min.session.timeout.ms": "1000"}
_POLL_S: Final = 0.1


class GroupFleet:
    """Runs inside the block."""

    def __init__(self, folder: Path, servers: str, topic: str, session_s: int) -> None:
        self._folder = folder
        self._arguments = (servers, topic, str(session_s * 1000))
        self._trickle = _KafkaTrickle(servers, topic)
        self._members: dict[str, subprocess.Popen[bytes]] = {}
        self._journals: dict[str, Journal] = {}

    def __enter__(self) -> Self:
        self._trickle.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._members:
            self.kill(name)
        self._trickle.__exit__(kind, error, trace)

    @property
    def coordinator(self) -> str:
        """A broker, which is not killed."""
        return ""

    def start(self, name: str) -> None:
        path = self._folder / f"{name}.journal"
        command = (sys.executable, "-m", __name__, *self._arguments, str(path))
        self._members[name] = subprocess.Popen(command, cwd=ROOT, preexec_fn=die_with_parent())
        self._journals[name] = Journal(path)

    def kill(self, name: str) -> float:
        self._members[name].kill()
        at = time.time()
        self._members[name].wait()
        return at

    def begun(self) -> Mapping[str, Sequence[Begun]]:
        return {name: journal.begun for name, journal in self._journals.items()}


class _KafkaTrickle(Background):
    def __init__(self, servers: str, topic: str) -> None:
        super().__init__("kafka trickle")
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 1, "acks": "1"})
        self._topic = topic
        self._next_at = time.monotonic()

    def turn(self) -> None:
        for partition in range(PARTITIONS):
            self._producer.produce(self._topic, b"0", partition=partition)
        self._producer.poll(0)
        self._next_at += EVERY_S
        self.pause(max(0.0, self._next_at - time.monotonic()))

    def finish(self) -> None:
        self._producer.flush(60)


class KafkaGroups:
    """A broker, or the reason why there is none."""

    def __init__(self, servers: str, unavailable: str = "") -> None:
        self._servers = servers
        self._unavailable = unavailable
        self._numbers = itertools.count()

    def perform(self, folder: Path, session_s: int) -> Figures:
        """NotAvailable without a broker."""
        if self._unavailable:
            raise NotAvailable(self._unavailable)
        topic = f"takeover-{next(self._numbers)}"
        with closing(KafkaProvider(self._servers)) as provider:
            provider.admin().create_topics([TopicSpec(topic, PARTITIONS)])
        with GroupFleet(folder, self._servers, topic, session_s) as fleet:
            return play(fleet)


@contextmanager
def kafka_groups(folder: Path) -> Iterator[KafkaGroups]:
    service = KafkaService(folder, settings=_SETTINGS)
    try:
        service.start()
    except ServiceError as error:
        yield KafkaGroups("", unavailable=str(error))
        return
    try:
        yield KafkaGroups(service.bootstrap_servers)
    finally:
        service.erase()


def be_member(servers: str, topic: str, session_ms: str, journal: str) -> None:
    """Until killed. What was given is noted, and committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": int(session_ms),
            # As often as our hosts renew their leases, and as Kafka's own clients are set for a session of 15 s.
            "heartbeat.interval.ms": int(session_ms) // 5,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
        }
    )
    consumer.subscribe([topic])
    with Path(journal).open("a", buffering=1) as notes:
        while True:
            message = consumer.poll(_POLL_S)
            if message is not None and message.error() is None:
                notes.write(f"{time.time():.6f} {topic}.{message.partition()} -\n")


if __name__ == "__main__":
    be_member(*sys.argv[1:])
