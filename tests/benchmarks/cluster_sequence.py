"""What moves when services come and go, by each assignor on the same sequence: 1,000 partitions on 100 services."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from queuecore.cluster.assignment import Assignor
from tests.benchmarks.cluster_assignment import COOPERATIVE, THINGSBOARD, Planner, Workload, kafkas, ours
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers.kafka_assignors import KafkaAssignors

WORK: Final = Workload(10, 100)
JOINS: Final = {"1 joins": 1, "9 join": 9}
LEAVES: Final = {"1 leaves": 1, "10 leave": 10}
RESTART: Final = "rolling restart"
CHANGES: Final = (*JOINS, *LEAVES, RESTART)


@dataclass(frozen=True)
class Outcome:
    """Of one part of the sequence: partitions that changed hands, the most less the fewest of a service, seconds."""

    moves: int = 0
    spread: int = 0
    took_s: float = 0.0

    def then(self, other: "Outcome") -> "Outcome":
        return Outcome(self.moves + other.moves, max(self.spread, other.spread), self.took_s + other.took_s)


class Contestant:
    """An assignor that goes through the sequence."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def moves(self, part: str) -> Callable[[Path], float]:
        return lambda _folder: self._outcomes[part].moves

    def spread(self, part: str) -> Callable[[Path], float]:
        return lambda _folder: self._outcomes[part].spread

    def took_s(self, _folder: Path) -> float:
        return sum(outcome.took_s for outcome in self._run_through().values())

    @cached_property
    def _outcomes(self) -> dict[str, Outcome]:
        """Run once: but for the time, they are the same whenever it is run."""
        return self._run_through()

    def _run_through(self) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        current: Mapping[str, str] = {}
        for part, alive in sequence():
            after, took_s = self._planner(alive, current)
            counts = Counter(after.values())
            spread = max(counts[service] for service in alive) - min(counts[service] for service in alive)
            moves = sum(after[partition] != owner for partition, owner in current.items())
            outcomes[part] = outcomes.get(part, Outcome()).then(Outcome(moves, spread, took_s))
            current = after
        return outcomes


def sequence() -> Iterator[tuple[str, Sequence[str]]]:
    """Who is there, step by step. Ids are random, as hosts' names are: a new one is anywhere among the others."""
    chance = random.Random(1)
    ids = iter([f"host-{number:05x}" for number in chance.sample(range(16**5), 200)])
    alive = [next(ids) for _ in range(100)]
    yield "100 start", alive
    for part, count in JOINS.items():
        alive = [*alive, *(next(ids) for _ in range(count))]
        yield part, alive
    for part, count in LEAVES.items():
        gone = set(chance.sample(alive, count))
        alive = [service for service in alive if service not in gone]
        yield part, alive
    for restarted in alive:
        yield RESTART, [service for service in alive if service != restarted]
        yield RESTART, alive


def sequence_benchmarks(jvm: KafkaAssignors) -> list[Benchmark]:
    subject = Contestant(ours(Assignor.STICKY, WORK))
    peers = {
        COOPERATIVE: Contestant(kafkas("cooperative", WORK, jvm)),
        "Kafka's range": Contestant(kafkas("range", WORK, jvm)),
        THINGSBOARD: Contestant(ours(Assignor.THINGSBOARD, WORK)),
    }
    return [
        *(
            _compare(f"moves, {part}", "partitions", subject, peers, lambda one, p=part: one.moves(p))
            for part in CHANGES
        ),
        *(
            _compare(f"spread, {part}", "partitions", subject, peers, lambda one, p=part: one.spread(p))
            for part in CHANGES
        ),
        _compare("all these plans", "s", subject, peers, lambda one: one.took_s, least_ratio=None),
    ]


def _compare(
    name: str,
    unit: str,
    subject: Contestant,
    peers: Mapping[str, Contestant],
    measured: Callable[[Contestant], Callable[[Path], float]],
    least_ratio: float | None = 1,
) -> Benchmark:
    return Benchmark(
        subject=Measurement(name, measured(subject)),
        peers=tuple(
            Peer(who, measured(peer), least_ratio if who == COOPERATIVE else None) for who, peer in peers.items()
        ),
        unit=unit,
        better="lower",
    )
