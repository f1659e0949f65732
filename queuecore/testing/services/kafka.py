"""Kafka: one node that is broker and controller (KRaft), as small as it can be and still be a real one."""

import base64
import shutil
import struct
import uuid
from pathlib import Path

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
    "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
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

METADATA, METADATA_VERSION, CORRELATION_ID = 3, 1, 7
NO_TOPICS = 0


def metadata_request() -> bytes:
    """A Metadata request for no topics: the cheapest question only a working broker answers."""
    header = struct.pack(">hhih", METADATA, METADATA_VERSION, CORRELATION_ID, -1)
    body = struct.pack(">i", NO_TOPICS)
    return struct.pack(">i", len(header + body)) + header + body


class KafkaService(Service):
    """A single Kafka broker; auto-creation of topics is off, as a production cluster has it.

    `ephemeral` changes nothing here: Kafka leaves it to the kernel when to write, in any case.
    """

    name = "kafka"

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
        controller_port = remembered_port(self.data_dir / "controller-port", other_than=self.port)
        if not self._log_dir.exists():
            self._format(controller_port)
        self._write_properties(controller_port, self._log_dir)

    def _write_properties(self, controller_port: int, log_dir: Path) -> None:
        broker = f"BROKER://{LOOPBACK}:{self.port}"
        controller = f"CONTROLLER://{LOOPBACK}:{controller_port}"
        settings = SETTINGS | {
            "listeners": f"{broker},{controller}",
            "advertised.listeners": broker,
            # A fixed list of voters, read at each start: the recorded kind would remember an old port.
            "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
            "log.dirs": str(log_dir),
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def _format(self, controller_port: int) -> None:
        """Format the storage aside and rename it: a format that was killed leaves no half of one."""
        draft = self.data_dir / "logs.new"
        shutil.rmtree(draft, ignore_errors=True)
        self._write_properties(controller_port, draft)
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        arguments = ("format", f"--cluster-id={cluster_id}", f"--config={self._properties}")
        run_tool(self._java("-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", *arguments), cwd=self.data_dir)
        draft.rename(self._log_dir)

    def _command(self) -> tuple[str, ...]:
        return self._java("-Xmx512m", "kafka.Kafka", str(self._properties))

    def _java(self, *arguments: str) -> tuple[str, ...]:
        jars = f"{jar_directory()}/*"
        # IPv4 alone, and no JMX server or heap dump: nothing beyond the two loopback listeners.
        options = (f"-Dlog4j2.configurationFile={LOGGING}", "-Djava.net.preferIPv4Stack=true")
        return (find_java() or "java", "-cp", jars, *options, *arguments)

    def _answers(self) -> bool:
        """Whether the broker tells us that there is a broker: it has joined its cluster and takes requests."""
        reply = exchange(self.port, metadata_request(), reply_bytes=12)
        if len(reply) < 12:
            return False
        _size, correlation_id, brokers = struct.unpack(">iii", reply)
        return bool(correlation_id == CORRELATION_ID and brokers > 0)
