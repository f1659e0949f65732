"""An installation whose hosts are processes of their own. Run as a program, this prepares it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from queueapi.supervisor.child import die_with_parent
from queuecore.providers.base import Provider
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import (
    SYSTEM_TENANT,
    ProviderPartition,
    ServiceType,
    TopicPartitionInfo,
    dead_letter_partition,
    group_name,
)
from tests.reliability.cluster_handler import CONCURRENCY, HANDLER, JOURNAL
from tests.reliability.cluster_journal import Event, Journal, read_journals
from tests.reliability.cluster_rows import ClusterDatabase

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class CheckedQueue:
    name: str
    partitions: int
    consumer_per_partition: bool
    delivery: str = "at_least_once"

    @property
    def infos(self) -> list[TopicPartitionInfo]:
        return [TopicPartitionInfo(self.name.lower(), number) for number in range(self.partitions)]

    def group(self, number: int) -> str:
        partition = number if self.consumer_per_partition else None
        return group_name(ServiceType.TB_RULE_ENGINE, self.name, SYSTEM_TENANT, partition)


QUEUES: Final = (
    CheckedQueue("Each", 12, consumer_per_partition=True),
    CheckedQueue("Shared", 6, consumer_per_partition=False),
    CheckedQueue("Once", 3, consumer_per_partition=True, delivery="exactly_once"),
)


@dataclass(slots=True)
class Process:
    """One life of a host, or the producer."""

    name: str
    life: str
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """In good order, if it still runs; its exit code."""
        if self.process.poll() is None:
            self.send(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)


@dataclass(slots=True)
class Installation:
    """`settings` are variables that all its processes have; `kafka` the servers, where it has Kafka."""

    folder: Path
    database: ClusterDatabase
    settings: Mapping[str, str]
    kafka: str = ""
    running: list[Process] = field(default_factory=list)
    _lives: int = 0

    def prepare(self) -> None:
        subprocess.run(
            [sys.executable, "-m", "tests.reliability.cluster_installation"],
            cwd=ROOT, env=self._environment("preparing", self.database.url), check=True,
        )  # fmt: skip

    def start_host(self, service_id: str, database_url: str | None = None) -> Process:
        self._lives += 1
        life = f"{service_id}.{self._lives}"
        url = self.database.url if database_url is None else database_url
        return self._start("cluster_host", service_id, life, url)

    def start_load(self, seed: str) -> Process:
        return self._start("cluster_load", seed, "load", self.database.url)

    def start_bulk(self) -> Process:
        return self._start("cluster_bulk", "bulk", "bulk", self.database.url)

    def kill_all(self) -> None:
        for one in self.running:
            one.process.kill()
            one.process.wait()

    @contextmanager
    def provider(self) -> Iterator[Provider]:
        from queuecore.providers.kafka import KafkaProvider
        from queuecore.providers.log import LogProvider

        opened: Provider = KafkaProvider(self.kafka) if self.kafka else LogProvider(self.folder / "log")
        with closing(opened):
            yield opened

    def is_all_committed(self, provider: Provider) -> bool:
        """Whether the groups are at the end of every partition."""
        groups: dict[str, list[ProviderPartition]] = {}
        for queue in QUEUES:
            for number, info in enumerate(queue.infos):
                groups.setdefault(queue.group(number), []).append(info.place)
        admin = provider.admin()
        committed = admin.committed_offsets(groups)
        ends = admin.end_offsets([place for places in groups.values() for place in places])
        return all(committed[group].get(place, 0) >= ends[place] for group in groups for place in groups[group])

    def letters(self, provider: Provider) -> frozenset[str]:
        """The payloads of messages that were given up."""
        found = set()
        with closing(provider.reader()) as reader:
            for queue in QUEUES:
                topic = dead_letter_partition(queue.infos[0]).full_topic_name
                for number in range(queue.partitions):
                    records = reader.read(ProviderPartition(topic, number), 0, 10_000)
                    found |= {record.data.decode() for record in records}
        return frozenset(found)

    def events(self) -> list[Event]:
        return read_journals(self._journals())

    def written(self) -> int:
        """How many bytes all journals have: it grows while something is done."""
        return sum(path.stat().st_size for path in self._journals())

    def fault_journal(self) -> Journal:
        return Journal(self.folder / "faults.journal", "faults")

    def _journals(self) -> list[Path]:
        return list(self.folder.glob("*.journal"))

    def _start(self, module: str, argument: str, life: str, database_url: str) -> Process:
        log = self.folder / f"{life}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", f"tests.reliability.{module}", argument],
                cwd=ROOT,
                env=self._environment(life, database_url),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(),
            )
        started = Process(argument, life, process, log)
        self.running.append(started)
        return started

    def _environment(self, life: str, database_url: str) -> dict[str, str]:
        return {
            **os.environ,
            "SWITCHYARD_DATA_DIR": str(self.folder),
            "SWITCHYARD_HANDLERS": "tests.reliability.cluster_handler",
            "SWITCHYARD_DATABASE_URL": database_url,
            JOURNAL: str(self.folder / f"{life}.journal"),
            **self.settings,
        }


def prepare() -> None:
    """Make the installation that the environment names."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    from django.core.management import call_command

    from queueapi.actions.actor import SYSTEM
    from queueapi.actions.queues import create_queue
    from queueapi.actions.tenants import ensure_system_tenant
    from queueapi.runtime import close_provider

    call_command("migrate", verbosity=0)
    for queue in QUEUES:
        create_queue(
            SYSTEM,
            ensure_system_tenant(),
            name=queue.name,
            topic=queue.name.lower(),
            handler=HANDLER,
            partitions=queue.partitions,
            consumer_per_partition=queue.consumer_per_partition,
            delivery=queue.delivery,
            submit_strategy="SEQUENTIAL_BY_ORIGINATOR",
            concurrency=CONCURRENCY,
        )
    close_provider()


if __name__ == "__main__":
    prepare()
