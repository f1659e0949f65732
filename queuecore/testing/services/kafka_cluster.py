"""Kafka on several nodes, each broker and controller, so that a test can take one away."""

import shutil
import string
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from queuecore.testing.services.base import POLL_S, START_TIMEOUT_S
from queuecore.testing.services.errors import ServiceFailed, ServiceMissing
from queuecore.testing.services.kafka import KafkaService, new_cluster_id
from queuecore.testing.services.ports import LOOPBACK, remembered_port

# The nodes share a small machine: little heap, one garbage collector thread, and the quick compiler alone.
JAVA_OPTIONS = ("-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

SETTINGS = {
    # How soon a killed broker is known to be gone: until then nobody leads its partitions, and it cannot come back.
    # By default 9 s.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    # A consumer that says where it is reads from the replica that is there.
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


def _replication(brokers: int) -> dict[str, str]:
    """Three copies where there are as many brokers, of which one may be missing."""
    copies = min(3, brokers)
    required = max(1, copies - 1)
    topics = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    return {
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(required),
        "transaction.state.log.min.isr": str(required),
        "share.coordinator.state.topic.min.isr": str(required),
        **{f"{topic}.replication.factor": str(copies) for topic in topics},
    }


class KafkaCluster:
    """Brokers 1, 2, 3 … in the racks a, b, c …, each with its own folder under `data_dir`. For one thread."""

    def __init__(self, data_dir: Path, *, brokers: int = 3) -> None:
        self.data_dir = data_dir.resolve()
        self._folders = {number: self.data_dir / f"broker-{number}" for number in range(1, brokers + 1)}
        self.brokers: Mapping[int, KafkaService] = {}

    @property
    def bootstrap_servers(self) -> str:
        """All addresses, as Kafka's clients take them; once started."""
        return ",".join(broker.address for broker in self.brokers.values())

    def start(self) -> None:
        """Start all that do not run, and return once each knows of all. Raises as `Service.start` does, and then
        leaves none running."""
        if not self.brokers:
            self.brokers = self._make_brokers()
        try:
            with ThreadPoolExecutor(len(self.brokers)) as pool:
                list(pool.map(KafkaService.start, self.brokers.values()))
            self._wait_until_they_know_each_other()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all, at once rather than in turn: the last ones would wait for those that are gone."""
        with ThreadPoolExecutor(len(self._folders)) as pool:
            list(pool.map(KafkaService.stop, self.brokers.values()))

    def erase(self) -> None:
        """Kill all, and delete what they wrote."""
        for broker in self.brokers.values():
            broker.kill()
        shutil.rmtree(self.data_dir, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _make_brokers(self) -> dict[int, KafkaService]:
        """They have to know each other's addresses before any of them runs."""
        some = KafkaService(self._folders[1])
        if reason := some.missing():
            raise ServiceMissing(reason)
        voters = ",".join(f"{number}@{LOOPBACK}:{port}" for number, port in self._choose_ports().items())
        cluster_id = self._cluster_id()
        return {
            number: KafkaService(
                folder,
                settings={
                    **SETTINGS,
                    **_replication(len(self._folders)),
                    "node.id": str(number),
                    "broker.rack": string.ascii_lowercase[number - 1],
                    "controller.quorum.voters": voters,
                },
                cluster_id=cluster_id,
                java_options=JAVA_OPTIONS,
            )
            for number, folder in self._folders.items()
        }

    def _choose_ports(self) -> dict[int, int]:
        """Note all ports, no two the same; those of the controllers."""
        controllers: dict[int, int] = {}
        taken: set[int] = set()
        for number, folder in self._folders.items():
            folder.mkdir(parents=True, exist_ok=True)
            taken.add(remembered_port(folder / "port", other_than=taken))
            controllers[number] = remembered_port(folder / "controller-port", other_than=taken)
            taken.add(controllers[number])
        return controllers

    def _cluster_id(self) -> str:
        """The same for all, also for those that are set up in a later attempt."""
        path = self.data_dir / "cluster-id"
        if not path.exists():
            path.write_text(new_cluster_id())
        return path.read_text()

    def _wait_until_they_know_each_other(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not all(broker.known_brokers() == len(self.brokers) for broker in self.brokers.values()):
            if time.monotonic() >= deadline:
                raise ServiceFailed(
                    f"the brokers at {self.bootstrap_servers} do not know of each other after {START_TIMEOUT_S:.0f} s; "
                    f"look at the logs under {self.data_dir}"
                )
            time.sleep(POLL_S)
