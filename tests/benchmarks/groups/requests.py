"""Request and response: round trips, beside those over NATS, Celery and Kafka's bare client, and what waiting costs.
Each kind of measurement is a module of its own; this one puts them together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.kafka_broker import kafka_broker
from tests.benchmarks.measuring import Benchmark
from tests.benchmarks.peers.celery_requests import celery_tasks
from tests.benchmarks.peers.nats_requests import nats_server
from tests.benchmarks.requests_memory import memory_benchmarks
from tests.benchmarks.requests_pending import pending_benchmark
from tests.benchmarks.requests_rates import rate_benchmarks, warm_up


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    memory = memory_benchmarks()
    with (
        kafka_broker(folder / "kafka") as broker,
        nats_server(folder / "nats") as nats,
        celery_tasks(folder / "redis") as tasks,
    ):
        if broker.is_available:
            warm_up(broker)
        yield [*rate_benchmarks(broker, nats, tasks), *memory, pending_benchmark(nats)]
