"""Listeners that fail on Kafka cost nothing but their poll; and what a member does while the brokers are silent."""

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuecore.errors import ProviderUnavailable
from queuecore.providers.base import Provider, QueueConsumer, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import KafkaOptions
from queuecore.testing.contract import OpenProvider
from queuecore.testing.contract.displacing import DisplacingContract
from queuecore.testing.contract.kit import POLL_MS, Heard, Subscribe, create_topic, hold, new_name, send_all, take
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.contract.kafka import KafkaKit
from tests.services import running

EACH = 100


class FailsToGiveUp(Heard):
    """As one whose commit is refused."""

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        super().revoked(partitions)
        raise RuntimeError("a commit that failed")


class TestFailingListeners(KafkaKit):
    def _divide(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe, *, records: int
    ) -> tuple[Provider, QueueConsumer]:
        """One that holds four partitions, with so many records each, and is to give up two of them when it polls."""
        provider = open_provider()
        infos = create_topic(provider, TopicSpec(new_name(), partitions=4))
        first = consumers(provider, group, infos, listener=FailsToGiveUp())
        hold({first: lambda held: len(held) == 4})
        for info in infos:
            send_all(provider, info, *[b"x"] * records)
        second = consumers(open_provider(), group, infos)

        def is_planned() -> bool:
            second.poll(POLL_MS)
            members = provider.admin().groups()[group].members
            return sorted(map(len, members.values())) == [0, 2]

        wait_until(is_planned)
        return provider, first

    def test_no_record_of_what_is_kept_is_skipped(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe
    ) -> None:
        _, consumer = self._divide(open_provider, group, consumers, records=EACH)
        given: dict[ProviderPartition, list[int]] = defaultdict(list)
        failures: list[str] = []

        def has_all() -> bool:
            try:
                for record in consumer.poll(POLL_MS):
                    given[ProviderPartition(record.topic, record.partition)].append(record.offset)
            except RuntimeError as error:
                failures.append(str(error))
            return bool(failures) and all(given[place][-1:] == [EACH - 1] for place in consumer.partitions)

        wait_until(has_all)
        assert (failures, len(consumer.partitions)) == (["a commit that failed"], 2)
        assert [given[place] for place in consumer.partitions] == [list(range(EACH))] * 2

    def test_after_a_sign_of_life_what_is_kept_is_read_on(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe
    ) -> None:
        provider, consumer = self._divide(open_provider, group, consumers, records=0)
        with pytest.raises(RuntimeError, match="that failed"):
            wait_until(consumer.keep_alive)
        assert len(consumer.partitions) == 2
        for place in consumer.partitions:
            send_all(provider, TopicPartitionInfo(*place, use_internal_partition=True), b"on")
        assert [record.data for record in take(consumer, 2)] == [b"on", b"on"]


class TestMemberIdsWhereBrokersDivide(KafkaKit, DisplacingContract):
    """Who has an id keeps to the classic protocol."""

    group_protocol = "consumer"


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[KafkaService]:
    yield from running(KafkaService(tmp_path / "kafka", ephemeral=True))


@pytest.mark.full
def test_while_a_commit_hangs_the_next_is_refused_at_once(own_broker: KafkaService) -> None:
    info = TopicPartitionInfo("hanging")
    hasty = KafkaOptions(request_timeout_ms=2_000, delivery_timeout_ms=2_000)
    with closing(KafkaProvider(own_broker.bootstrap_servers, kafka=hasty)) as provider:
        provider.admin().create_topics([TopicSpec(info.full_topic_name)])
        send_all(provider, info, b"0")
        consumer = provider.consumer("hanging")
        consumer.subscribe([info])
        take(consumer, 1)
        assert own_broker.pid is not None
        os.killpg(own_broker.pid, signal.SIGSTOP)
        try:
            # Silent until the block ends: who waits for the broker never gets there.
            for _ in range(3):
                with pytest.raises(ProviderUnavailable, match="does not answer"):
                    consumer.commit()
        finally:
            os.killpg(own_broker.pid, signal.SIGCONT)
        wait_until(lambda: not _refused(consumer))
        assert provider.admin().committed_offsets({"hanging": [info.place]}) == {"hanging": {info.place: 1}}


def _refused(consumer: QueueConsumer) -> bool:
    try:
        consumer.commit()
    except ProviderUnavailable:
        return True
    return False
