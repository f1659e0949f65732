"""Producers that follow the latest routing version, with threads."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from queuecore.cluster.memory_store import MemoryStore
from queuecore.cluster.routing_feed import RoutingFeed
from queuecore.errors import ConfigurationError, StoreUnavailable
from queuecore.routing import QueueKey, RoutedQueue, Router, RoutingTable
from queuecore.testing.waiting import wait_until
from queuecore.topics import SYSTEM_TENANT, ServiceType

RE = ServiceType.TB_RULE_ENGINE


def table_of(partitions: int) -> RoutingTable:
    return RoutingTable(0, {QueueKey(RE): RoutedQueue("tb_rule_engine", partitions)})


class CutOffStore:
    """A store that one producer can be cut off from."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.is_cut_off = False
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            if self.is_cut_off:
                raise StoreUnavailable("the store cannot be reached; mend that")
            return getattr(self._store, name)(*args)

        return call


class Producer:
    """A router that is fed, unless its feed is `held`."""

    def __init__(self, store: MemoryStore, name: str, **options: Any) -> None:
        self.store = CutOffStore(store)
        self.router = Router(RoutingTable(0, {}))
        self.may_use = threading.Event()
        self.may_use.set()
        self.feed = RoutingFeed(self.store, name, self.use, **{"look_every_s": 0.01, **options})  # type: ignore[arg-type]

    def use(self, table: RoutingTable) -> bool:
        assert self.may_use.wait(60)
        return self.router.publish(table)

    @property
    def partitions(self) -> int:
        return len(self.router.get_partitions(RE, None, SYSTEM_TENANT))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def start(store: MemoryStore) -> Iterator[Callable[..., Producer]]:
    producers: list[Producer] = []

    def start(name: str, *, is_cut_off: bool = False, **options: Any) -> Producer:
        producer = Producer(store, name, **options)
        producer.store.is_cut_off = is_cut_off
        producers.append(producer)
        producer.feed.start()
        return producer

    yield start
    for producer in producers:
        producer.may_use.set()
        producer.feed.stop()


def test_a_new_version_reaches_every_producer(store, start) -> None:
    store.publish_routing(table_of(1))
    producers = [start(name) for name in "abc"]
    wait_until(lambda: store.acknowledgements() == dict.fromkeys("abc", 1))
    for partitions in (2, 3):
        version = store.publish_routing(table_of(partitions))
        wait_until(lambda: store.acknowledgements() == dict.fromkeys("abc", version))  # noqa: B023
        assert [one.partitions for one in producers] == [partitions] * 3
        assert store.yet_to_acknowledge(version) == ()


def test_a_version_is_acknowledged_only_when_it_is_routed_by(store, start) -> None:
    store.publish_routing(table_of(1))
    producer = start("a")
    wait_until(lambda: store.acknowledgements() == {"a": 1})
    producer.may_use.clear()
    store.publish_routing(table_of(2))
    seen = set()
    real = store.acknowledge
    store.acknowledge = lambda name, version, lease_s: (
        seen.add((version, producer.partitions)),
        real(name, version, lease_s),
    )
    with pytest.raises(StoreUnavailable, match="does not answer"):
        producer.feed.refresh(timeout_s=0.05)
    assert (store.yet_to_acknowledge(2), producer.partitions, producer.feed.version) == (("a",), 1, 1)
    producer.may_use.set()
    wait_until(lambda: not store.yet_to_acknowledge(2))
    assert seen == {(2, 2)}


def test_who_knows_no_version_yet_is_a_producer_that_lags(store, start) -> None:
    producer = start("a")
    producer.feed.wait_ready()
    assert store.acknowledgements() == {"a": 0}
    assert store.yet_to_acknowledge(1) == ("a",)


def test_refreshing_waits_for_what_is_there_now(store, start) -> None:
    producer = start("a", look_every_s=3.0)
    for partitions in (1, 2, 3):
        store.publish_routing(table_of(partitions))
        producer.feed.refresh()
        assert producer.partitions == partitions


def test_while_the_store_is_away_the_producer_goes_on_and_says_so_once(store, start, caplog) -> None:
    caplog.set_level(logging.INFO, "queuecore.cluster.routing_feed")
    store.publish_routing(table_of(1))
    producer = start("a", lease_s=0.1)
    wait_until(lambda: producer.feed.is_current and producer.feed.version == 1)
    producer.store.is_cut_off = True
    store.publish_routing(table_of(2))
    wait_until(lambda: not producer.feed.is_current)
    assert producer.feed.age_s > 0.05
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        producer.feed.refresh()
    assert (producer.partitions, store.acknowledgements()) == (1, {})
    producer.store.is_cut_off = False
    wait_until(lambda: store.acknowledgements() == {"a": 2} and producer.feed.is_current)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    assert said.count("the store cannot be reached; mend that; messages go on by routing version 1") == 1
    assert [one for one in said if one.startswith("the routing can be read again")] == [
        "the routing can be read again; messages go by version 2"
    ]


def test_who_starts_while_the_store_is_away_waits_but_not_for_ever(store, start) -> None:
    store.publish_routing(table_of(1))
    producer = start("a", is_cut_off=True)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        producer.feed.wait_ready(timeout_s=0.05)
    assert (producer.feed.age_s, producer.feed.is_current) == (float("inf"), False)
    threading.Timer(0.05, lambda: setattr(producer.store, "is_cut_off", False)).start()
    producer.feed.wait_ready()
    assert producer.partitions == 1


def test_who_cannot_use_a_version_lags_and_is_not_gone(store, start, caplog) -> None:
    store.publish_routing(table_of(1))
    producer = start("a", lease_s=0.1)
    producer.feed.wait_ready()
    producer.router.publish(replace(table_of(9), version=9))
    store.publish_routing(table_of(2))
    with pytest.raises(StoreUnavailable, match="version 2 is refused"):
        producer.feed.refresh()
    signs = []
    real = store.acknowledge
    store.acknowledge = lambda *told: (signs.append(told), real(*told))
    wait_until(lambda: len(signs) > 3)
    assert {version for _, version, _ in signs} == {1}
    assert store.yet_to_acknowledge(2) == ("a",)


def test_a_store_that_has_forgotten_versions_is_followed(store, start) -> None:
    used = []
    store.publish_routing(table_of(1))
    store.publish_routing(table_of(2))
    feed = RoutingFeed(store, "a", used.append, look_every_s=0.01)
    feed.start()
    try:
        feed.wait_ready()
        store._tables, store._latest = {1: replace(table_of(1), version=1)}, 1
        feed.refresh()
        assert ([table.version for table in used], feed.version) == ([2, 1], 1)
    finally:
        feed.stop()


def test_who_stops_is_forgotten(store, start) -> None:
    producer = start("a")
    producer.feed.wait_ready()
    producer.feed.stop()
    assert store.acknowledgements() == {}
    assert producer.store.closed.is_set()
    assert not producer.feed.is_current
    with pytest.raises(StoreUnavailable, match="it was stopped"):
        producer.feed.refresh()


def test_who_stops_while_the_store_is_away_is_left_to_its_lease(store, start, caplog) -> None:
    producer = start("a")
    producer.feed.wait_ready()
    producer.store.is_cut_off = True
    producer.feed.stop()
    assert store.acknowledgements() == {"a": 0}
    assert "a is remembered as a producer until its lease ends" in caplog.text
    assert producer.store.closed.is_set()


@pytest.mark.parametrize(("look_every_s", "lease_s"), [(0, 1), (-1, 1), (1, 4)])
def test_times_that_cannot_work_are_refused(store, look_every_s, lease_s) -> None:
    with pytest.raises(ConfigurationError, match="at most a fifth of the lease"):
        RoutingFeed(store, "a", print, look_every_s=look_every_s, lease_s=lease_s)
