"""Kafka: what our provider and our subscriptions make of a client library, beside those who use the same."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from queuecore.topics import TopicPartitionInfo
from tests.benchmarks import kafka_provider
from tests.benchmarks.frameworks import process_rate
from tests.benchmarks.kafka_broker import MESSAGES, KafkaBroker, kafka_broker, kafka_messages
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers import bare_kafka
from tests.benchmarks.workload import RATE_UNIT, rate

# A few seconds at its rate.
_FAUST_MESSAGES: Final = 20_000


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    with kafka_broker(folder / "kafka") as broker:
        yield [_produce(broker), _consume(broker), _process(broker)]


def _produce(broker: KafkaBroker) -> Benchmark:
    """The goal is beside the loop whose callback reads what ours is told: where the message is stored. The other one
    shows what that costs."""

    def ours(_folder: Path) -> float:
        with broker.topic() as info:
            return kafka_provider.produce_rate(broker.servers, info, kafka_messages())

    def bare(delivered: type[bare_kafka.ErrorOnly]) -> Callable[[Path], float]:
        def measure(_folder: Path) -> float:
            sent = kafka_messages()
            with broker.topic() as info:
                place = info.place.topic
                return rate(len(sent), lambda: bare_kafka.send_all(broker.servers, place, sent, delivered()))

        return measure

    return Benchmark(
        subject=Measurement("kafka produce acks=all", ours),
        peers=(
            Peer("bare loop, reads metadata", bare(bare_kafka.Metadata), 0.9),
            Peer("bare loop, checks errors", bare(bare_kafka.ErrorOnly)),
        ),
        unit=RATE_UNIT,
    )


def _consume(broker: KafkaBroker) -> Benchmark:
    """Everything is read of each message, and each pack is committed."""

    def ours(_folder: Path) -> float:
        with _filled_topic(broker) as info:
            return kafka_provider.consume_rate(broker.servers, info, MESSAGES)

    def bare(_folder: Path) -> float:
        with _filled_topic(broker) as info:
            return bare_kafka.consume_rate(broker.servers, info.place.topic, MESSAGES)

    return Benchmark(
        subject=Measurement("kafka consume", ours),
        peers=(Peer("bare loop, commit per pack", bare, 0.8),),
        unit=RATE_UNIT,
    )


@contextmanager
def _filled_topic(broker: KafkaBroker) -> Iterator[TopicPartitionInfo]:
    with broker.topic() as info:
        bare_kafka.send_all(broker.servers, info.place.topic, kafka_messages(), bare_kafka.ErrorOnly())
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
