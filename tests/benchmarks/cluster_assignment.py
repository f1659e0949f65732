"""Dividing partitions among services: how long a plan takes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from queuecore.cluster.assignment import Assignor, plan
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers.kafka_assignors import KafkaAssignor, KafkaAssignors

# A plan, and how many seconds it took, for these services and who has what now.
Planner = Callable[[Sequence[str], Mapping[str, str]], tuple[Mapping[str, str], float]]

SIZES: Final = ((1_000, 10), (10_000, 100), (100_000, 1_000))
COOPERATIVE: Final = "Kafka's cooperative-sticky"
THINGSBOARD: Final = "our thingsboard"

# The last counts: the others are there for the JVM to warm up. A large one does more of that itself.
_JVM_RUNS: Final = 20
_JVM_RUNS_OF_LARGE: Final = 5
_LARGE: Final = 20_000
# A quotient of two single plans is mostly the machine's noise: of so many each, the shortest counts.
_PLANS_OF_A_GROWTH: Final = 5


@dataclass(frozen=True)
class Workload:
    """So many queues of so many partitions each, for us and for Kafka."""

    queues: int
    per_queue: int

    def topics(self) -> dict[str, int]:
        return {f"q{number}": self.per_queue for number in range(self.queues)}

    def partitions(self) -> list[ClusterPartition]:
        return [
            ClusterPartition(f"{queue}-{number}", queue=queue, number=number)
            for queue, count in self.topics().items()
            for number in range(count)
        ]


def ours(assignor: Assignor, work: Workload) -> Planner:
    partitions = work.partitions()

    def planner(services: Sequence[str], current: Mapping[str, str]) -> tuple[Mapping[str, str], float]:
        alive = [ServiceInfo(service) for service in services]
        started = time.perf_counter()
        made = plan(assignor, alive, partitions, current)
        return made.assignment, time.perf_counter() - started

    return planner


def kafkas(assignor: KafkaAssignor, work: Workload, jvm: KafkaAssignors) -> Planner:
    topics = work.topics()
    runs = _JVM_RUNS if work.queues * work.per_queue < _LARGE else _JVM_RUNS_OF_LARGE
    return lambda services, current: jvm.plan(assignor, services, topics, current, runs)


def time_benchmarks(jvm: KafkaAssignors) -> list[Benchmark]:
    largest = SIZES[-1]
    return [
        *(_plan_time(size, "one joins", 1, jvm, goal=1.0 if size == largest else None) for size in SIZES),
        _plan_time(largest, "half of them leave", -largest[1] // 2, jvm, goal=1.0),
        _growth(jvm),
    ]


def _plan_time(size: tuple[int, int], what: str, change: int, jvm: KafkaAssignors, goal: float | None) -> Benchmark:
    partitions, services = size
    work = Workload(partitions // 10, 10)

    def took(planner: Planner) -> Callable[[Path], float]:
        return lambda _folder: _time_of_change(planner, services, change)

    return Benchmark(
        subject=Measurement(
            f"plan, {partitions:,} partitions on {services:,} services, {what}", took(ours(Assignor.STICKY, work))
        ),
        peers=(
            Peer(COOPERATIVE, took(kafkas("cooperative", work, jvm))),
            Peer(THINGSBOARD, took(ours(Assignor.THINGSBOARD, work))),
        ),
        unit="s",
        goal=goal,
        better="lower",
    )


def _growth(jvm: KafkaAssignors) -> Benchmark:
    """10 is linear."""
    services, small, large = 1_000, Workload(1_000, 10), Workload(10_000, 10)

    def growth(planner_of: Callable[[Workload], Planner]) -> Callable[[Path], float]:
        def measure(_folder: Path) -> float:
            shortest = [
                min(_time_of_change(planner_of(work), services, 1) for _ in range(_PLANS_OF_A_GROWTH))
                for work in (small, large)
            ]
            return shortest[1] / shortest[0]

        return measure

    return Benchmark(
        subject=Measurement("a plan's time with ten times the partitions", growth(partial(ours, Assignor.STICKY))),
        peers=(Peer(COOPERATIVE, growth(lambda work: kafkas("cooperative", work, jvm))),),
        unit="times",
        goal=15,
        better="lower",
    )


def _time_of_change(planner: Planner, services: int, change: int) -> float:
    names = [f"service-{number}" for number in range(services + max(change, 0))]
    before, _ = planner(names[:services], {})
    return planner(names[: services + change], before)[1]
