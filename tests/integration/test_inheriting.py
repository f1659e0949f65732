"""Offsets when a queue's consumers are divided otherwise: the new groups go on where the old ones ended."""

from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

import pytest

from queuecore.consuming.plan import ConsumptionPlan
from queuecore.errors import GroupActive
from queuecore.messages import QueueMessage
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.memory import MemoryProvider
from queuecore.sending import send_and_wait
from queuecore.topics import TopicPartitionInfo
from workers.inheriting import inherit_offsets


@pytest.fixture(params=["in-memory", "kafka"])
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    if request.param == "kafka":
        servers = request.getfixturevalue("kafka_service").bootstrap_servers
        with closing(KafkaProvider(servers)) as provider:
            yield provider
    else:
        with closing(MemoryProvider()) as provider:
            yield provider


@pytest.fixture
def infos(provider: Provider) -> list[TopicPartitionInfo]:
    """Two partitions with three messages each."""
    topic = f"inherited_{uuid4().hex}"
    infos = [TopicPartitionInfo(topic, number) for number in (0, 1)]
    provider.admin().create_topics([TopicSpec(info.full_topic_name) for info in infos])
    for info in infos * 3:
        send_and_wait(provider.producer(), info, QueueMessage(None, b""), 30)
    return infos


def plan(group: str, *infos: TopicPartitionInfo) -> ConsumptionPlan:
    return ConsumptionPlan("Main", group, infos, "log")


def committed(provider: Provider, group: str, *infos: TopicPartitionInfo) -> list[int | None]:
    places = [info.place for info in infos]
    offsets = provider.admin().committed_offsets({group: places})[group]
    return [offsets.get(place) for place in places]


def test_one_for_all_goes_on_where_each_was_and_back(provider: Provider, infos: list[TopicPartitionInfo]) -> None:
    admin, name = provider.admin(), uuid4().hex
    shared, each = f"{name}-all", [f"{name}-0", f"{name}-1"]
    for group, info, offset in zip(each, infos, (1, 2), strict=True):
        admin.alter_group_offsets(group, {info.place: offset})
    inherit_offsets(admin, plan(shared, *infos), each)
    assert committed(provider, shared, *infos) == [1, 2]
    assert [committed(provider, group, *infos) for group in each] == [[None, None], [None, None]]
    admin.alter_group_offsets(shared, {info.place: 3 for info in infos})
    inherit_offsets(admin, plan(each[1], infos[1]), [shared])
    assert committed(provider, each[1], infos[1]) == [3]
    assert committed(provider, shared, *infos) == [3, None]


def test_what_is_further_counts(provider: Provider, infos: list[TopicPartitionInfo]) -> None:
    admin, name = provider.admin(), uuid4().hex
    new, former, place = f"{name}-new", f"{name}-former", infos[0].place
    admin.alter_group_offsets(new, {place: 2})
    admin.alter_group_offsets(former, {place: 1})
    inherit_offsets(admin, plan(new, infos[0]), [former])
    assert committed(provider, new, infos[0]) == [2]
    assert committed(provider, former, infos[0]) == [None]


def test_what_an_operator_resets_later_stays(provider: Provider, infos: list[TopicPartitionInfo]) -> None:
    admin, name = provider.admin(), uuid4().hex
    new, former = f"{name}-new", f"{name}-former"
    admin.alter_group_offsets(former, {infos[0].place: 3})
    inherit_offsets(admin, plan(new, infos[0]), [former])
    admin.alter_group_offsets(new, {infos[0].place: 0})
    inherit_offsets(admin, plan(new, infos[0]), [former])
    assert committed(provider, new, infos[0]) == [0]


def test_nothing_is_taken_from_who_still_reads(provider: Provider, infos: list[TopicPartitionInfo]) -> None:
    admin, name = provider.admin(), uuid4().hex
    new, former = f"{name}-new", f"{name}-former"
    consumer = provider.consumer(former)
    consumer.subscribe([infos[0]])
    while not consumer.poll(100):
        pass
    consumer.commit()
    [done] = committed(provider, former, infos[0])
    with pytest.raises(GroupActive):
        inherit_offsets(admin, plan(new, infos[0]), [former])
    consumer.unsubscribe()
    consumer.stop()
    inherit_offsets(admin, plan(new, infos[0]), [former])
    assert committed(provider, new, infos[0]) == [done]
