"""Our lag is what Kafka's own `kafka-consumer-groups` says at the same moment."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from queuecore.providers.base import Provider, QueueConsumer, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.testing.contract.kit import create_topic, new_name, send_all, take
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.integration.kafka_groups import Figures, Told, committed, told_by_kafka


class Groups:
    """Groups on topics of three partitions with messages, seen by both."""

    def __init__(self, kafka: KafkaService, provider: Provider, folder: Path) -> None:
        self._kafka = kafka
        self._folder = folder
        self.provider = provider
        self.infos = [info for _ in range(2) for info in create_topic(provider, TopicSpec(new_name(), partitions=3))]
        for number, info in enumerate(self.infos):
            send_all(provider, info, *[b"x"] * (number + 2))
        self.names = [f"{name}-{uuid4().hex[:8]}" for name in ("idle", "reading", "new")]

    def told_by_kafka(self) -> Figures:
        there = self.provider.admin().groups()
        return committed(told_by_kafka(self._kafka, [name for name in self.names if name in there], self._folder))

    def told_by_us(self) -> Figures:
        admin, places = self.provider.admin(), [info.place for info in self.infos]
        known = admin.committed_offsets(dict.fromkeys(self.names, places))
        ends = admin.end_offsets(places)
        return {
            (group, place): Told(offset, ends[place], ends[place] - offset)
            for group, offsets in known.items()
            for place, offset in offsets.items()
        }


@pytest.fixture
def groups(kafka_service: KafkaService, tmp_path: Path) -> Iterator[Groups]:
    with closing(KafkaProvider(kafka_service.bootstrap_servers)) as provider:
        yield Groups(kafka_service, provider, tmp_path)


@pytest.fixture
def reading(groups: Groups) -> Iterator[QueueConsumer]:
    """A member of the second group that has polled all there was."""
    consumer = groups.provider.consumer(groups.names[1])
    try:
        consumer.subscribe(groups.infos)
        take(consumer, sum(range(2, 8)))
        yield consumer
    finally:
        consumer.stop()


def test_lag_is_what_kafkas_own_tool_says(groups: Groups, reading: QueueConsumer) -> None:
    admin, places = groups.provider.admin(), [info.place for info in groups.infos]
    admin.alter_group_offsets(groups.names[0], {place: place.partition for place in places[:4]})
    reading.commit(dict.fromkeys(places[2:], 2))
    ours = groups.told_by_us()
    assert len(ours) == 8, "four partitions of each group but the new one"
    assert ours == groups.told_by_kafka()

    reading.commit()
    for info in groups.infos:
        send_all(groups.provider, info, b"more", b"and more")
    assert groups.told_by_us() == groups.told_by_kafka() != ours


def test_what_a_transaction_has_written_counts_at_once(
    groups: Groups, reading: QueueConsumer, kafka_service: KafkaService
) -> None:
    reading.commit()
    place = groups.infos[0].place

    def agree_on(lag: int) -> None:
        """Once it is so: the mark that ends a transaction is written after the end was answered, and counts too."""
        wait_until(lambda: groups.told_by_us()[groups.names[1], place][2] == lag)
        assert groups.told_by_us() == groups.told_by_kafka()

    producer = Producer({"bootstrap.servers": kafka_service.bootstrap_servers, "transactional.id": new_name()})
    producer.init_transactions(DEADLINE_S)
    for before, finish in ((0, producer.commit_transaction), (2, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(place.topic, b"x", partition=place.partition)
        producer.flush(DEADLINE_S)
        agree_on(before + 1)
        finish(DEADLINE_S)
        agree_on(before + 2)
