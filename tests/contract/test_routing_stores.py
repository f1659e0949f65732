"""What every store promises of routing: versions in a row, each as it was published, and who goes by which."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db.models import F

from queueapi.cluster import models
from queueapi.cluster.store import DatabaseStore
from queuecore.cluster.memory_store import MemoryStore
from queuecore.cluster.store import KEPT_VERSIONS, RoutingStore
from queuecore.routing import QueueKey, RoutedQueue, RoutingTable
from queuecore.testing.clock import ManualClock
from queuecore.topics import ServiceType
from tests.databases import on_database

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_S = 10.0
RE = ServiceType.TB_RULE_ENGINE
TENANT = UUID("784f394c-42b6-435a-983c-b7beff2784f9")


def table_of(partitions: int, **options) -> RoutingTable:
    return RoutingTable(0, {QueueKey(RE): RoutedQueue("tb_rule_engine", partitions)}, **options)


@dataclass
class Kit:
    """A store, and time that passes when told to."""

    store: RoutingStore
    pass_time: Callable[[float], None]


def _shift(seconds: float) -> None:
    """In a database time has passed where what was written is older."""
    models.RoutingAcknowledgement.objects.update(lease_expires_at=F("lease_expires_at") - timedelta(seconds=seconds))


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def kit(request: pytest.FixtureRequest) -> Iterator[Kit]:
    if request.param == "memory":
        clock = ManualClock()
        yield Kit(MemoryStore(clock), clock.advance)
        return
    where = nullcontext() if request.param == "sqlite" else on_database(request.getfixturevalue("postgres_url"))
    with where:
        yield Kit(DatabaseStore(), _shift)
        for model in (models.RoutingVersion, models.RoutingAcknowledgement, models.ClusterState):
            model.objects.all().delete()


@pytest.fixture
def store(kit: Kit) -> RoutingStore:
    return kit.store


def test_nothing_is_published_at_first(store: RoutingStore) -> None:
    assert (store.routing_version(), store.routing(), store.routing(1)) == (0, None, None)


def test_versions_rise_by_one_and_are_as_they_were_published(store: RoutingStore) -> None:
    tables = [
        table_of(1),
        table_of(2, isolated=frozenset({TENANT}), tenants=frozenset({TENANT, uuid4()})),
        table_of(2, hash_name="sha256"),
        RoutingTable(99, {}),
    ]
    assert [store.publish_routing(table) for table in tables] == [1, 2, 3, 4]
    assert store.routing_version() == 4
    assert [store.routing(number) for number in (1, 2, 3, 4)] == [
        replace(table, version=number) for number, table in enumerate(tables, 1)
    ]
    assert store.routing() == store.routing(4)
    assert store.routing(5) is None


def test_what_routes_like_the_latest_is_no_new_version(store: RoutingStore) -> None:
    assert store.publish_routing(table_of(1)) == store.publish_routing(replace(table_of(1), version=7)) == 1
    assert store.publish_routing(table_of(2)) == 2
    # As before, but not as the latest.
    assert store.publish_routing(table_of(1)) == 3


def test_a_table_follows_only_the_version_that_its_maker_knew(store: RoutingStore) -> None:
    assert store.publish_routing_after(1, table_of(1)) is None
    assert store.publish_routing_after(0, table_of(1)) == 1
    assert store.publish_routing_after(0, table_of(2)) is None
    assert store.publish_routing_after(0, table_of(1)) is None
    assert store.publish_routing_after(1, table_of(1)) == 1
    assert store.publish_routing_after(1, table_of(2)) == 2
    assert store.routing_version() == 2


def test_whoever_publishes_at_once_gets_a_version_of_its_own(store: RoutingStore) -> None:
    together = threading.Barrier(4)

    def publish(first: int) -> list[int]:
        together.wait(60)
        try:
            return [store.publish_routing(table_of(number)) for number in range(first, first + 5)]
        finally:
            store.close()

    with ThreadPoolExecutor(4) as pool:
        published = list(pool.map(publish, (1, 11, 21, 31)))
    assert sorted(version for versions in published for version in versions) == list(range(1, 21))
    for first, versions in zip((1, 11, 21, 31), published, strict=True):
        tables = [store.routing(version) for version in versions]
        assert tables == [replace(table_of(number), version=version) for number, version in enumerate(versions, first)]


def test_who_publishes_the_same_at_once_gets_the_same_version(store: RoutingStore) -> None:
    together = threading.Barrier(4)

    def publish(_: int) -> int:
        together.wait(60)
        try:
            return store.publish_routing(table_of(1))
        finally:
            store.close()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(publish, range(4))) == {1}


def test_producers_are_there_as_long_as_they_acknowledge(kit: Kit) -> None:
    kit.store.acknowledge("a", 0, LEASE_S)
    kit.store.acknowledge("b", 3, LEASE_S)
    kit.pass_time(LEASE_S * 0.6)
    kit.store.acknowledge("a", 0, LEASE_S)
    assert kit.store.acknowledgements() == {"a": 0, "b": 3}
    kit.pass_time(LEASE_S * 0.6)
    assert kit.store.acknowledgements() == {"a": 0}
    kit.store.acknowledge("c", 1, LEASE_S)
    kit.store.acknowledge("b", 4, LEASE_S)
    assert kit.store.acknowledgements() == {"a": 0, "b": 4, "c": 1}


def test_who_has_yet_to_acknowledge_is_named(kit: Kit) -> None:
    for name, version in (("c", 1), ("a", 0), ("b", 2)):
        kit.store.acknowledge(name, version, LEASE_S)
    assert kit.store.yet_to_acknowledge(2) == ("a", "c")
    kit.store.acknowledge("c", 2, LEASE_S)
    assert kit.store.yet_to_acknowledge(2) == ("a",)
    # Who is gone is waited for by nobody.
    kit.store.forget_producer("a")
    kit.store.forget_producer("nobody")
    assert kit.store.yet_to_acknowledge(2) == ()
    kit.pass_time(LEASE_S * 1.1)
    assert kit.store.yet_to_acknowledge(99) == ()


def test_old_versions_are_forgotten_unless_somebody_goes_by_them(kit: Kit) -> None:
    kit.store.acknowledge("a", 2, LEASE_S * 2)
    kit.store.acknowledge("b", 3, LEASE_S)
    kit.pass_time(LEASE_S * 1.5)
    for number in range(1, KEPT_VERSIONS + 6):
        kit.store.publish_routing(table_of(number))
    known = [number for number in range(KEPT_VERSIONS + 6) if kit.store.routing(number) is not None]
    assert known == [2, *range(6, KEPT_VERSIONS + 6)]
