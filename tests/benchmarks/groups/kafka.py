"""Kafka: what our provider and our subscriptions make of a client library, beside those who use the same."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from queuecore.providers.options import ProducerOptions
from queuecore.topics import TopicPartitionInfo
from tests.benchmarks import kafka_provider
from tests.benchmarks.frameworks import process_rate
from tests.benchmarks.kafka_broker import (
    BY_DEFAULT,
    LARGE_BATCHES,
    MESSAGES,
    KafkaBroker,
    kafka_broker,
    kafka_messages,
)
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers import bare_kafka
from tests.benchmarks.workload import RATE_UNIT, rate

# A few seconds at its rate.
_FAUST_MESSAGES: Final = 20_000


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    with kafka_broker(folder / "kafka") as broker:
        if broker.is_available:
            _warm_up(broker)
        yield [
            _produce("kafka produce acks=all", BY_DEFAULT, broker),
            _produce("kafka produce acks=all, large batches", LARGE_BATCHES, broker),
            _consume(broker),
            _process(broker),
        ]


def _warm_up(broker: KafkaBroker) -> None:
    """A broker's first messages take seconds, and would be on the account of whoever is measured first."""
    with _filled_topic(broker) as info:
        bare_kafka.consume_rate(broker.servers, info.place.topic, MESSAGES, bare_kafka.read_raw)


def _produce(name: str, producing: ProducerOptions, broker: KafkaBroker) -> Benchmark:
    """The goal is beside the loop whose callback reads what ours is told: where the message is stored. The other one
    shows what that costs."""

    def ours(_folder: Path) -> float:
        with broker.topic() as info:
            return kafka_provider.produce_rate(broker.servers, producing, info, kafka_messages())

    def bare(delivered: type[bare_kafka.ErrorOnly]) -> Callable[[Path], float]:
        def measure(_folder: Path) -> float:
            sent = kafka_messages()
            with broker.topic() as info:
                topic = info.place.topic
                return rate(len(sent), lambda: bare_kafka.send_all(broker.servers, producing, topic, sent, delivered()))

        return measure

    return Benchmark(
        subject=Measurement(name, ours),
        peers=(
            Peer("bare loop, reads metadata", bare(bare_kafka.Metadata), 0.9),
            Peer("bare loop, checks errors", bare(bare_kafka.ErrorOnly)),
        ),
        unit=RATE_UNIT,
    )


def _consume(broker: KafkaBroker) -> Benchmark:
    """Everything is read of each message, and each pack is committed. The goal is beside the loop that takes what the
    library gives; the other one shows what it costs to make of that what ours gives."""

    def ours(_folder: Path) -> float:
        with _filled_topic(broker) as info:
            return kafka_provider.consume_rate(broker.servers, info, MESSAGES)

    def bare(read: bare_kafka.Read) -> Callable[[Path], float]:
        def measure(_folder: Path) -> float:
            with _filled_topic(broker) as info:
                return bare_kafka.consume_rate(broker.servers, info.place.topic, MESSAGES, read)

        return measure

    return Benchmark(
        subject=Measurement("kafka consume", ours),
        peers=(
            Peer("bare loop, commit per pack", bare(bare_kafka.read_raw), 0.8),
            Peer("bare loop, same values", bare(bare_kafka.read_decoded)),
        ),
        unit=RATE_UNIT,
    )


@contextmanager
def _filled_topic(broker: KafkaBroker) -> Iterator[TopicPartitionInfo]:
    with broker.topic() as info:
        bare_kafka.send_all(broker.servers, LARGE_BATCHES, info.place.topic, kafka_messages(), bare_kafka.ErrorOnly())
        yield info


def _process(broker: KafkaBroker) -> Benchmark:
    return Benchmark(
        subject=Measurement("kafka subscription", process_rate(broker, "ours", MESSAGES)),
        peers=(
            Peer("sentry-arroyo", process_rate(broker, "arroyo", MESSAGES), 2),
            Peer("quixstreams", process_rate(broker, "quix", MESSAGES), 2),
            Peer("faust-streaming", process_rate(broker, "faust", _FAUST_MESSAGES), 2),
        ),
        unit=RATE_UNIT,
    )
