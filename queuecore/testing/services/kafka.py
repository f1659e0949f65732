"""Kafka: one node that is broker and controller (KRaft), as small as it can be and still be a real one."""

import base64
import shutil
import struct
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from queuecore.testing.services.base import Service
from queuecore.testing.services.java import find_java, missing_java
from queuecore.testing.services.kafka_jars import fetch_jars, jar_directory
from queuecore.testing.services.ports import LOOPBACK, exchange, remembered_port
from queuecore.testing.services.process import run_tool

LOGGING = Path(__file__).with_name("kafka-log4j2.xml")

# One node cannot replicate, so all internal topics have one copy, and few partitions: each costs files
# and start-up time. The cleaner's buffer is 128 MiB by default, a quarter of this heap.
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "BROKER",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

NOTHING: Mapping[str, str] = MappingProxyType({})
BROKER, CONTROLLER = "BROKER", "CONTROLLER"

METADATA, METADATA_VERSION, CORRELATION_ID = 3, 1, 7
NO_TOPICS = 0


def metadata_request() -> bytes:
    """A Metadata request for no topics: the cheapest question only a working broker answers."""
    header = struct.pack(">hhih", METADATA, METADATA_VERSION, CORRELATION_ID, -1)
    body = struct.pack(">i", NO_TOPICS)
    return struct.pack(">i", len(header + body)) + header + body


def java_command(*arguments: str) -> tuple[str, ...]:
    """Run a class of Kafka's. IPv4 alone, and no JMX server or heap dump: nothing beyond the loopback listeners."""
    options = (f"-Dlog4j2.configurationFile={LOGGING}", "-Djava.net.preferIPv4Stack=true")
    return (find_java() or "java", "-cp", f"{jar_directory()}/*", *options, *arguments)


def new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


class KafkaService(Service):
    """A single Kafka broker; auto-creation of topics is off, as a production cluster has it.

    settings      what is to be otherwise than in SETTINGS, in Kafka's words
    cluster_id    of the cluster a new one belongs to; by default one of its own
    java_options  for the broker's process

    `ephemeral` changes nothing here: Kafka leaves it to the kernel when to write, in any case.
    """

    name = "kafka"
    # Besides the plain one: their names, and the protocol of each.
    further_listeners: ClassVar[Mapping[str, str]] = NOTHING

    def __init__(
        self,
        data_dir: Path,
        *,
        ephemeral: bool = False,
        settings: Mapping[str, str] = NOTHING,
        cluster_id: str = "",
        java_options: Sequence[str] = ("-Xmx512m",),
    ) -> None:
        super().__init__(data_dir, ephemeral=ephemeral)
        self.settings = settings
        self._cluster_id = cluster_id
        self._java_options = java_options
        self._ports: dict[str, int] = {}

    def missing(self) -> str | None:
        """Say how to get Java, or Maven where the jars are not in the cache yet."""
        if reason := missing_java():
            return reason
        if jar_directory().is_dir() or shutil.which("mvn"):
            return None
        return (
            f"Maven is not installed and Kafka's jars are not in {jar_directory()} (Maven fetches them): "
            "run scripts/require maven, or install the package maven (apt, dnf, brew)"
        )

    @property
    def bootstrap_servers(self) -> str:
        """The address as Kafka's clients take it."""
        return self.address

    def known_brokers(self) -> int:
        """How many brokers this one knows of, itself included; 0 while it is starting. `OSError` when it is away."""
        reply = exchange(self.port, metadata_request(), reply_bytes=12)
        if len(reply) < 12:
            return 0
        _size, correlation_id, brokers = struct.unpack(">iii", reply)
        return int(brokers) if correlation_id == CORRELATION_ID else 0

    def environment(self) -> dict[str, str]:
        """Make Kafka the provider, and this broker the one to use."""
        return {
            "SWITCHYARD_QUEUE_TYPE": "kafka",
            "SWITCHYARD_QUEUE_KAFKA_BOOTSTRAP_SERVERS": self.bootstrap_servers,
        }

    @property
    def _properties(self) -> Path:
        return self.data_dir / "server.properties"

    @property
    def _log_dir(self) -> Path:
        return self.data_dir / "logs"

    def _prepare(self) -> None:
        fetch_jars()
        for name in (CONTROLLER, *self.further_listeners):
            others = {self.port, *self._ports.values()} - {self._ports.get(name)}
            self._ports[name] = remembered_port(self.data_dir / f"{name.lower()}-port", other_than=others)
        if not self._log_dir.exists():
            self._format()
        self._write_properties(self._log_dir)

    def _all_settings(self) -> dict[str, str]:
        protocols = {BROKER: "PLAINTEXT", CONTROLLER: "PLAINTEXT", **self.further_listeners}
        ports = {BROKER: self.port, **self._ports}
        listeners = {name: f"{name}://{LOOPBACK}:{port}" for name, port in ports.items()}
        return {
            **SETTINGS,
            "listeners": ",".join(listeners.values()),
            "advertised.listeners": ",".join(one for name, one in listeners.items() if name != CONTROLLER),
            "listener.security.protocol.map": ",".join(f"{name}:{what}" for name, what in protocols.items()),
            # A fixed list of voters, read at each start: the recorded kind would remember an old port.
            "controller.quorum.voters": f"1@{LOOPBACK}:{ports[CONTROLLER]}",
            **self.settings,
        }

    def _write_properties(self, log_dir: Path) -> None:
        settings = {**self._all_settings(), "log.dirs": str(log_dir)}
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def _format(self) -> None:
        """Format the storage aside and rename it: a format that was killed leaves no half of one."""
        draft = self.data_dir / "logs.new"
        shutil.rmtree(draft, ignore_errors=True)
        self._write_properties(draft)
        cluster_id = self._cluster_id or new_cluster_id()
        arguments = (f"--cluster-id={cluster_id}", f"--config={self._properties}", *self._format_arguments())
        tool = ("-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", "format")
        run_tool(java_command(*tool, *arguments), cwd=self.data_dir)
        draft.rename(self._log_dir)

    def _format_arguments(self) -> Sequence[str]:
        """What new storage is to hold from the beginning."""
        return ()

    def _command(self) -> tuple[str, ...]:
        return java_command(*self._java_options, "kafka.Kafka", str(self._properties))

    def _answers(self) -> bool:
        """Whether the broker tells us that there is a broker: it has joined its cluster and takes requests."""
        return self.known_brokers() > 0
