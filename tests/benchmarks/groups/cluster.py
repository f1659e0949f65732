"""The cluster: who consumes what. Each kind of measurement is a module of its own; this one puts them together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.cluster_assignment import time_benchmarks
from tests.benchmarks.cluster_sequence import sequence_benchmarks
from tests.benchmarks.cluster_takeover import takeover_benchmarks
from tests.benchmarks.measuring import Benchmark
from tests.benchmarks.peers.kafka_assignors import kafka_assignors
from tests.benchmarks.peers.kafka_group import kafka_groups


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    with kafka_assignors(folder / "kafka-assignors") as jvm, kafka_groups(folder / "kafka-groups") as groups:
        yield [*time_benchmarks(jvm), *sequence_benchmarks(jvm), *takeover_benchmarks(groups)]
