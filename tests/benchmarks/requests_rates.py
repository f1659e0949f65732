"""Round trips: how many a second, and how long they take at half of that."""

import itertools
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from queuecore.providers.base import TopicSpec
from queuecore.requests import RequestTopics
from tests.benchmarks.kafka_broker import KafkaBroker
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers import kafka_requests
from tests.benchmarks.peers.celery_requests import CeleryTasks
from tests.benchmarks.peers.nats_requests import Nats
from tests.benchmarks.requests_load import RATE_UNIT, Load, percentile
from tests.benchmarks.requests_ours import (
    BASE,
    SERVICE_ID,
    LoadOn,
    measure_between,
    measure_pair,
    measure_within,
    open_kafka,
    open_log,
    singly,
    together,
)

# Of each party so many that it takes a few seconds.
_MEMORY_REQUESTS: Final = 200_000
_LOG_REQUESTS: Final = 100_000
_KAFKA_REQUESTS: Final = 100_000
_NATS_REQUESTS: Final = 50_000
_CELERY_REQUESTS: Final = 2_000
_WARM_UP: Final = 20_000
# How long requests are sent on schedule.
_SCHEDULE_S: Final = 4.0
_MOST_MS: Final = 50

# In this folder: how many a second, or the p99 at so many a second.
RateOf = Callable[[Path], float]
P99Of = Callable[[float, Path], float]


class Party:
    """One that is measured both ways: how long its round trips take at half of what it was found to do before. Each
    has its own half: what is asked is how it does with room to spare."""

    def __init__(self, name: str, rate_of: RateOf, p99_of: P99Of) -> None:
        self.name = name
        self._rate_of = rate_of
        self._p99_of = p99_of
        self._rates: list[float] = []

    def rate(self, folder: Path) -> float:
        self._rates.append(self._rate_of(folder))
        return self._rates[-1]

    def p99_ms(self, folder: Path) -> float:
        if not self._rates:
            self.rate(folder)
        return self._p99_of(statistics.median(self._rates) / 2, folder)


def warm_up(broker: KafkaBroker) -> None:
    """A broker's first messages take seconds, and would be on the account of whoever is measured first."""
    _bare_kafka(broker, _WARM_UP).rate(Path())


def rate_benchmarks(broker: KafkaBroker, nats: Nats, tasks: CeleryTasks) -> list[Benchmark]:
    memory, log = _memory(singly), _log(singly)
    kafka, bare = _kafka(broker, singly), _bare_kafka(broker)
    nats_beside = [_nats(nats), _nats(nats)]
    return [
        _rates(memory, 50_000, Peer("NATS", nats_beside[0].rate), _celery(tasks)),
        _rates(_memory(together), 50_000, Peer(memory.name, memory.rate)),
        _rates(log, 25_000, Peer("NATS", nats_beside[1].rate), _celery(tasks)),
        _rates(_log(together), 25_000, Peer(log.name, log.rate)),
        _rates(kafka, None, Peer(bare.name, bare.rate, 0.7)),
        _rates(_kafka(broker, together), None, Peer(bare.name, bare.rate, 0.7)),
        _latencies(memory, nats_beside[0]),
        _latencies(log, nats_beside[1]),
        _latencies(kafka, bare),
    ]


def _rates(party: Party, goal: float | None, *peers: Peer) -> Benchmark:
    return Benchmark(Measurement(f"requests, {party.name}", party.rate), peers, RATE_UNIT, goal)


def _latencies(party: Party, peer: Party) -> Benchmark:
    subject = Measurement(f"round trip at half of that, p99, {party.name}", party.p99_ms)
    return Benchmark(subject, (Peer(peer.name, peer.p99_ms),), "ms", _MOST_MS, better="lower")


def _memory(load_on: LoadOn) -> Party:
    return Party(
        _named("in-memory, one process", load_on),
        lambda _folder: measure_within(partial(run_of, _MEMORY_REQUESTS), load_on),
        lambda per_s, _folder: measure_within(partial(p99_of, per_s), load_on),
    )


def _log(load_on: LoadOn) -> Party:
    return Party(
        _named("log, two processes", load_on),
        lambda folder: measure_between(partial(open_log, folder), partial(run_of, _LOG_REQUESTS), load_on),
        lambda per_s, folder: measure_between(partial(open_log, folder), partial(p99_of, per_s), load_on),
    )


def _named(party: str, load_on: LoadOn) -> str:
    return party if load_on is singly else f"{party}, sent {load_on.__name__}"


def _kafka(broker: KafkaBroker, load_on: LoadOn) -> Party:
    def measure(measured: Callable[[Load], float]) -> float:
        with _kafka_topics(broker) as topics:
            return measure_between(partial(open_kafka, broker.servers), measured, load_on, topics)

    return Party(
        _named("Kafka, two processes", load_on),
        lambda _folder: measure(partial(run_of, _KAFKA_REQUESTS)),
        lambda per_s, _folder: measure(partial(p99_of, per_s)),
    )


def _bare_kafka(broker: KafkaBroker, requests: int = _KAFKA_REQUESTS) -> Party:
    def measure(measured: Callable[[Load], float]) -> float:
        with _kafka_topics(broker) as ours:
            responses = ours.response_spec(SERVICE_ID).name
            topics = kafka_requests.Topics(broker.servers, ours.name, len(ours.requests), responses)
            return measure_pair(
                partial(kafka_requests.answering, topics), partial(kafka_requests.asking, topics, measured)
            )

    return Party(
        "bare confluent-kafka",
        lambda _folder: measure(partial(run_of, requests)),
        lambda per_s, _folder: measure(partial(p99_of, per_s)),
    )


def _nats(nats: Nats) -> Party:
    return Party(
        "NATS",
        lambda _folder: nats.rate(_NATS_REQUESTS),
        lambda per_s, _folder: nats.p99_ms(scheduled(per_s), per_s),
    )


def _celery(tasks: CeleryTasks) -> Peer:
    return Peer("Celery on Redis", lambda folder: tasks.rate(_CELERY_REQUESTS, folder))


_numbers = itertools.count()


@contextmanager
def _kafka_topics(broker: KafkaBroker) -> Iterator[RequestTopics]:
    """Topics that nobody has used, and nobody will."""
    topics = RequestTopics.named(f"{BASE}-{next(_numbers)}")
    specs: list[TopicSpec] = [*topics.specs, topics.response_spec(SERVICE_ID)]
    provider = open_kafka(broker.servers)
    try:
        provider.admin().create_topics(specs)
        yield topics
        provider.admin().delete_topics([spec.name for spec in specs])
    finally:
        provider.close()


def run_of(count: int, load: Load) -> float:
    return load.run(count)


def p99_of(per_s: float, load: Load) -> float:
    return percentile(load.latencies_ms(scheduled(per_s), per_s), 99)


def scheduled(per_s: float) -> int:
    """How many are sent on schedule: as many as are due in its time."""
    return max(1, round(per_s * _SCHEDULE_S))
