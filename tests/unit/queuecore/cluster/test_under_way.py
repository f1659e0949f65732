"""What is under way by which routing version, and when a version is acknowledged."""

from concurrent.futures import Future

import pytest
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from queuecore.cluster.memory_store import MemoryStore
from queuecore.cluster.routing_feed import RoutingFeed
from queuecore.cluster.under_way import Sending, UnderWay
from queuecore.routing import QueueKey, RoutedQueue, RoutingTable
from queuecore.testing.waiting import wait_until
from queuecore.topics import ServiceType


def table_of(partitions: int) -> RoutingTable:
    return RoutingTable(0, {QueueKey(ServiceType.TB_RULE_ENGINE): RoutedQueue("tb_rule_engine", partitions)})


def test_what_is_begun_goes_by_the_guide_of_its_time() -> None:
    under_way = UnderWay(1, "north")
    with under_way.begin() as early:
        under_way.follow(2, "south")
        with under_way.begin() as late:
            assert (early.guide, late.guide, under_way.guide) == ("north", "south", "south")
            assert not under_way.is_over(2)
    assert under_way.is_over(2)


def test_it_lasts_until_the_provider_has_answered_whoever_waits() -> None:
    under_way = UnderWay(1, "north")
    stored: Future[None] = Future()
    with under_way.begin() as sending:
        sending.sent(stored)
    under_way.follow(2, "south")
    assert not under_way.is_over(2)
    stored.set_exception(RuntimeError("refused in the end"))
    assert under_way.is_over(2)


class Model(RuleBasedStateMachine):
    """Versions, what was begun by each, and answers in any order."""

    blocks = Bundle("blocks")
    sends = Bundle("sends")

    def __init__(self) -> None:
        super().__init__()
        self.version = 1
        self.under_way = UnderWay(1, 1)
        # By version: blocks that are open, and sends that are not answered.
        self.expected: list[int] = []

    @rule()
    def follow(self) -> None:
        self.version += 1
        self.under_way.follow(self.version, self.version)

    @rule(target=blocks)
    def begin(self) -> Sending[int]:
        sending = self.under_way.begin()
        assert sending.guide == self.version
        self.expected.append(sending.guide)
        return sending

    @rule(target=sends, sending=blocks)
    def send(self, sending: Sending[int]) -> "tuple[int, Future[None]]":
        stored: Future[None] = Future()
        sending.sent(stored)
        self.expected.append(sending.guide)
        return sending.guide, stored

    @rule(sending=consumes(blocks))
    def leave(self, sending: Sending[int]) -> None:
        sending.__exit__(None, None, None)
        self.expected.remove(sending.guide)

    @rule(sent=consumes(sends))
    def answer(self, sent: "tuple[int, Future[None]]") -> None:
        version, stored = sent
        stored.set_result(None)
        self.expected.remove(version)

    @invariant()
    def is_over_when_nothing_by_another_is_under_way(self) -> None:
        for version in range(1, self.version + 1):
            assert self.under_way.is_over(version) == all(other == version for other in self.expected)


TestModel = Model.TestCase


@pytest.mark.parametrize("versions", [1, 3])
def test_a_version_is_acknowledged_when_nothing_by_an_earlier_one_is_under_way(versions: int) -> None:
    """Until then the producer acknowledges the earlier one, and goes on living."""
    store = MemoryStore()
    store.publish_routing(table_of(1))
    under_way = UnderWay[RoutingTable | None](0, None)
    feed = RoutingFeed(
        store, "a", lambda table: under_way.follow(table.version, table), under_way.is_over, look_every_s=0.005
    )
    feed.start()
    try:
        wait_until(lambda: store.acknowledgements() == {"a": 1})
        with under_way.begin() as sending:
            version = 1
            for _ in range(versions):
                version = store.publish_routing(table_of(version + 1))
                feed.refresh()
            assert (feed.version, store.acknowledgements()) == (version, {"a": 1})
            assert feed.is_current
            stored: Future[None] = Future()
            sending.sent(stored)
        feed.refresh()
        assert store.acknowledgements() == {"a": 1}
        stored.set_result(None)
        wait_until(lambda: store.acknowledgements() == {"a": version})
    finally:
        feed.stop()
