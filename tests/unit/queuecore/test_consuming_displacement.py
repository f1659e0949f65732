"""One place in a group, and two that want it: who is displaced stands by, and does not insist."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.errors import NotOwner
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import GroupDescription, QueueConsumer, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.admin import LogAdmin
from queuecore.providers.log.consumer import LogConsumer
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.unit.queuecore.consuming_kit import GROUP, INFO, SEQUENTIAL, Bench

MEMBER = "the-only"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LogProvider]:
    with closing(LogProvider(tmp_path)) as provider:
        yield provider


@contextmanager
def rival(provider: LogProvider) -> Iterator[QueueConsumer]:
    """Another that would take the place."""
    consumer = provider.consumer(GROUP, member_id=MEMBER)
    try:
        yield consumer
    finally:
        consumer.stop()


def members(provider: LogProvider) -> int:
    found = provider.admin().groups().get(GROUP)
    return 0 if found is None else len(found.members)


class Displaced:
    """A handler during whose first message another takes the place, and gets the message too."""

    def __init__(self, other: QueueConsumer, info: TopicPartitionInfo = INFO) -> None:
        self.other = other
        self.info = info
        self.seen: list[str] = []

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        self.seen.append(record.data.decode())
        if len(self.seen) == 1:
            self.other.subscribe([self.info])
            wait_until(lambda: self.other.poll(25))


def test_one_that_was_displaced_stands_by_and_goes_on_afterwards(
    provider: LogProvider, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Bench(provider)) as bench, rival(provider) as other:
        bench.send("a", "b")
        handler = Displaced(other)
        consumption = bench.consume(handler, submit=SEQUENTIAL, member_id=MEMBER)
        wait_until(lambda: members(provider) == 2)
        assert (consumption.partitions, bench.committed()) == (frozenset(), None)
        assert consumption.is_running
        other.poll(25)
        other.commit({INFO.place: 1})
        other.stop()
        bench.wait_for_commit(2)
        assert handler.seen[-1] == "b"
        assert "another" in caplog.text
        with rival(provider) as newcomer:
            newcomer.subscribe([INFO])
            wait_until(lambda: not consumption.partitions)


def test_one_that_lost_its_partition_otherwise_comes_back_as_itself(
    provider: LogProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session was over, say: nobody has its place, and it stands by for nobody."""
    losses, seen = iter([NotOwner("its session is over")]), list[bytes]()
    commit = LogConsumer.commit

    def lose_once(self: LogConsumer, *arguments: Any) -> None:
        for loss in losses:
            raise loss
        commit(self, *arguments)

    monkeypatch.setattr(LogConsumer, "commit", lose_once)
    monkeypatch.setattr("queuecore.consuming.consumption.stand_by", lambda *_: pytest.fail("nobody has its place"))
    with closing(Bench(provider)) as bench:
        bench.send("a")
        consumption = bench.consume(lambda record, context: seen.append(record.data), member_id=MEMBER)
        bench.wait_for_commit(1)
        assert seen == [b"a", b"a"]
        monkeypatch.setattr("queuecore.consuming.consumption.stand_by", lambda *_: None)
        with rival(provider) as newcomer:
            newcomer.subscribe([INFO])
            wait_until(lambda: not consumption.partitions)


@pytest.mark.parametrize("end", ["free", "stopped"])
def test_inside_a_topic_one_that_was_displaced_stays_out_of_the_group(
    provider: LogProvider, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    info = TopicPartitionInfo("inside", 1, use_internal_partition=True)
    looks: list[int] = []
    groups = LogAdmin.groups

    def look(admin: LogAdmin) -> Mapping[str, GroupDescription]:
        found = groups(admin)
        looks.append(len(found[GROUP].members))
        return found

    monkeypatch.setattr(LogAdmin, "groups", look)
    monkeypatch.setattr("queuecore.consuming.standing_by._LOOK_EVERY_S", 0.01)
    provider.admin().create_topics([TopicSpec("inside", partitions=2)])
    for data in (b"a", b"b"):
        send_and_wait(provider.producer(), info, QueueMessage(None, data), DEADLINE_S)
    with rival(provider) as other:
        handler = Displaced(other, info)
        plan = ConsumptionPlan("in", GROUP, (info,), "handler", submit=SEQUENTIAL, member_id=MEMBER)
        consumption = Consumption(plan, provider, handler)
        consumption.start()
        wait_until(lambda: len(looks) >= 3)
        assert set(looks) == {1}
        if end == "free":
            other.commit({info.place: 1})
            other.unsubscribe()
            wait_until(lambda: handler.seen[-1] == "b")
        assert consumption.stop(DEADLINE_S)
        assert consumption.error is None
        if end == "stopped":
            other.commit({info.place: 2})
            assert other.poll(0) == []
