"""Exactly once on Kafka under epochs, after a member that was killed in the middle of a transaction."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.delivery import Delivery
from queuecore.messages import QueueMessage
from queuecore.providers.base import QueueConsumer
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ConsumerOptions, KafkaOptions
from queuecore.testing.contract.kit import send_all
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.contract.kafka import KafkaKit

MEMBER = "partition-0"
# Nobody would live to see brokers end the transaction by themselves.
PATIENT = KafkaOptions(producer_properties={"transaction.timeout.ms": str(10 * int(DEADLINE_S) * 1000)})


class TestUndecided(KafkaKit):
    @pytest.fixture
    def provider(self, kafka_service: KafkaService) -> Iterator[KafkaProvider]:
        consuming = ConsumerOptions(session_timeout_ms=6_000)
        with closing(KafkaProvider(kafka_service.bootstrap_servers, kafka=PATIENT, consuming=consuming)) as provider:
            yield provider

    @pytest.mark.parametrize("member_id", [MEMBER, None])
    def test_the_next_owner_does_not_wait_for_what_was_left_undecided(
        self, provider: KafkaProvider, queue: list[TopicPartitionInfo], group: str, member_id: str | None
    ) -> None:
        info, output = queue[:2]
        send_all(provider, info, b"0")
        consumer = provider.consumer(group, member_id=member_id)
        consumer.subscribe([info], epochs={info.place: 1})
        wait_until(lambda: consumer.poll(100))
        # As a consumption names it, and is killed before it commits.
        producer = provider.transactional_producer(f"{info.place.topic}/{info.place.partition}/{group}")
        killed = producer.begin()
        killed.send(output, QueueMessage(None, b"never seen"))
        killed.commit_offsets(consumer, {info.place: 1})
        give_place(consumer, member_id)
        seen = list[bytes]()
        plan = ConsumptionPlan(
            "q", group, (info,), "note", delivery=Delivery.EXACTLY_ONCE, member_id=member_id, epochs={0: 2}
        )
        consumption = Consumption(plan, provider, lambda record, context: seen.append(record.data))
        consumption.start()
        try:
            wait_until(lambda: seen == [b"0"])
        finally:
            assert consumption.stop(DEADLINE_S)


def give_place(consumer: QueueConsumer, member_id: str | None) -> None:
    """One that has a place of its own is displaced; others are missed sooner or later."""
    if member_id is None:
        consumer.stop()
