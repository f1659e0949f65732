"""Hosts that come and are killed: for how long nobody consumes their partitions, and what others notice.

Three hosts as processes, on `log` and SQLite. Beside them Kafka's own groups, with a session as long as our lease.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers.kafka_group import KafkaGroups
from tests.benchmarks.takeover import EVERY_S, PARTITIONS, Figures, Stage, play
from tests.reliability.cluster_hosting import ClusterInstallation, Host
from tests.reliability.journal import Begun
from tests.reliability.trickle import Trickle

_AGAIN_S: Final = 1.0
_MOST_GAP_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Leases:
    lease_s: int
    coordinator_s: int

    @property
    def settings(self) -> dict[str, str]:
        return {
            "SWITCHYARD_CLUSTER_LEASE_MS": str(self.lease_s * 1000),
            "SWITCHYARD_CLUSTER_COORDINATOR_LEASE_MS": str(self.coordinator_s * 1000),
            "SWITCHYARD_QUEUE_LOG_SESSION_TIMEOUT_MS": str(self.lease_s * 1000 * 2 // 3),
        }


BY_DEFAULT: Final = Leases(15, 5)
SHORT: Final = Leases(3, 1)


class HostFleet:
    """Ours. Runs inside the block."""

    def __init__(self, folder: Path, leases: Leases) -> None:
        self._installation = ClusterInstallation(folder / "data", PARTITIONS, leases.settings)
        self._hosts: dict[str, Host] = {}
        self._running = ExitStack()

    def __enter__(self) -> Self:
        self._running.enter_context(
            # What is measured is not the disk.
            Trickle(self._installation.folder / "log", self._installation.infos, EVERY_S, acks="1")
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    @property
    def coordinator(self) -> str:
        return self._installation.coordinator

    def start(self, name: str) -> None:
        self._hosts[name] = self._running.enter_context(Host(self._installation, name))

    def kill(self, name: str) -> float:
        return self._hosts[name].kill()

    def begun(self) -> Mapping[str, Sequence[Begun]]:
        return {name: host.begun for name, host in self._hosts.items()}


def takeover_benchmarks(groups: KafkaGroups) -> list[Benchmark]:
    return [one for leases in (SHORT, BY_DEFAULT) for one in _benchmarks(leases, groups)]


def _benchmarks(leases: Leases, groups: KafkaGroups) -> list[Benchmark]:
    def perform(folder: Path) -> Figures:
        with HostFleet(folder, leases) as fleet:
            return play(fleet)

    ours = Stage(perform)
    kafka = Stage(lambda folder: groups.perform(folder, leases.lease_s))
    of, session = f"lease {leases.lease_s} s", f"Kafka's group, session {leases.lease_s} s"

    def compare(name: str, figure: str, peer_figure: str, goal: float | None, unit: str = "ms") -> Benchmark:
        peers = [Peer(session, kafka.figure(peer_figure))]
        if unit == "ms" and figure != "join_pause_ms":
            peers.append(Peer("a quiet time before", ours.figure("quiet_ms")))
        return Benchmark(
            subject=Measurement(f"{name}, {of}", ours.figure(figure)),
            peers=tuple(peers),
            unit=unit,
            goal=goal,
            better="lower",
        )

    again_s = leases.lease_s + _AGAIN_S
    return [
        compare("killed: consumed again", "kill_s", "kill_s", again_s, "s"),
        compare("killed: others wait", "kill_others_ms", "kill_others_ms", _MOST_GAP_MS),
        compare("coordinator killed: consumed again", "coordinator_s", "kill_s", again_s + leases.coordinator_s, "s"),
        compare("coordinator killed: others wait", "coordinator_others_ms", "kill_others_ms", _MOST_GAP_MS),
        compare("joins: moved ones wait", "join_pause_ms", "join_pause_ms", None),
        compare("joins: others wait", "join_others_ms", "join_others_ms", _MOST_GAP_MS),
    ]
