"""Consumptions on Kafka whose partitions are assigned by others."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.delivery import Delivery
from queuecore.errors import Displaced, StaleEpoch
from queuecore.providers.base import Provider
from queuecore.testing.contract import OpenProvider
from queuecore.testing.contract.kit import places, send_all
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.contract.kafka import KafkaKit

MEMBER = "partition-0"


@contextmanager
def consuming(plan: ConsumptionPlan, provider: Provider, seen: list[bytes]) -> Iterator[Consumption]:
    consumption = Consumption(plan, provider, lambda record, context: seen.append(record.data))
    consumption.start()
    try:
        yield consumption
    finally:
        if consumption.is_running:
            assert consumption.stop(DEADLINE_S)


class TestConsumptions(KafkaKit):
    def committed(self, provider: Provider, group: str, info: TopicPartitionInfo) -> tuple[int | None, int | None]:
        admin, place = provider.admin(), info.place
        offset = admin.committed_offsets({group: [place]})[group].get(place)
        return offset, admin.committed_epochs({group: [place]})[group].get(place)

    @pytest.mark.parametrize("delivery", list(Delivery))
    def test_the_newer_epoch_goes_on_and_the_older_ends(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, delivery: Delivery
    ) -> None:
        info, seen = queue[0], list[bytes]()
        plan = ConsumptionPlan(
            "q", group, (info,), "note", delivery=delivery, member_id=MEMBER, epochs={0: 2}, poll_interval_ms=10
        )
        provider = open_provider()
        send_all(provider, info, b"0")
        with consuming(plan, provider, seen) as newer:
            wait_until(lambda: self.committed(provider, group, info) == (1, 2))
            too_late = list[bytes]()
            with consuming(replace(plan, epochs={0: 1}), open_provider(), too_late) as late:
                send_all(provider, info, b"1")
                wait_until(late.ended.is_set)
            assert isinstance(late.see_error(), StaleEpoch)
            assert (too_late, late.stale, late.counts.stale_refused) == ([], {0: 2}, 1)
            # Whether it heard that it was displaced before its place was free again, is the brokers' affair.
            wait_until(lambda: newer.ended.is_set() or self.committed(provider, group, info) == (2, 2))
            assert newer.error is None or isinstance(newer.see_error(), Displaced)
        with consuming(plan, provider, seen):
            wait_until(lambda: self.committed(provider, group, info) == (2, 2))
        assert set(seen) == {b"0", b"1"}

    def test_a_plan_changes_and_what_stays_is_not_interrupted(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str
    ) -> None:
        provider, seen = open_provider(), list[bytes]()
        for number, info in enumerate(queue):
            send_all(provider, info, b"%d" % number)
        plan = ConsumptionPlan("q", group, tuple(queue[:2]), "note", epochs={0: 1, 1: 1}, poll_interval_ms=10)
        with consuming(plan, provider, seen) as consumption:
            for info in queue[:2]:
                wait_until(lambda info=info: self.committed(provider, group, info) == (1, 1))
            stay, part = consumption.stay, consumption.stay._parts[queue[1].place]
            assert consumption.change(replace(plan, infos=tuple(queue[1:]), epochs={1: 1, 2: 5}))
            wait_until(lambda: self.committed(provider, group, queue[2]) == (1, 5))
            wait_until(lambda: consumption.partitions == {1, 2})
            assert consumption.stay is stay
            assert stay._parts[queue[1].place] is part
            assert consumption.change(replace(plan, infos=tuple(queue[1:]), epochs={1: 2, 2: 5}))
            send_all(provider, queue[1], b"more")
            wait_until(lambda: self.committed(provider, group, queue[1]) == (2, 2))
            assert stay._parts[queue[1].place] is not part
        assert sorted(seen) == [b"0", b"1", b"2", b"more"]
        assert provider.admin().committed_offsets({group: places(queue)})[group] == {
            queue[0].place: 1, queue[1].place: 2, queue[2].place: 1
        }  # fmt: skip


class TestConsumptionsOfInternalPartitions(TestConsumptions):
    use_internal_partition = True
