"""What plans are made from: always as it is now, and read again only where something has changed."""

from uuid import UUID

import pytest
from django.db import connections

from queueapi.cluster.databases import cluster_database
from queueapi.cluster.models import ClusterState, Partition
from queueapi.cluster.store import DatabaseStore
from queuecore.cluster.view import Spread
from tests.cluster_kit import FakeCluster, partitions_named


@pytest.fixture
def cluster(database) -> FakeCluster:
    own = partitions_named("Orders", "orders.isolated.x", 11, UUID(int=9), label="")
    cluster = FakeCluster([*partitions_named("Orders", "orders", 3), *own])
    cluster.join("a", "b")
    cluster.settle()
    return cluster


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Statements about partitions from now on."""
    said: list[str] = []

    def note(execute, sql, *args):
        if "cluster_partition" in sql:
            said.append(sql)
        return execute(sql, *args)

    monkeypatch.setattr(connections[cluster_database()], "execute_wrappers", [note])
    return said


def as_view_says(found: Spread) -> bool:
    told, layout = DatabaseStore().view().spread, found.layout
    objects = [list(each.layout.partitions(queue)) for each in (found, told) for queue in each.layout.queues]
    half = len(objects) // 2
    return (
        objects[:half] == objects[half:]
        and (layout.names, layout.numbers, layout.queue_of)
        == (told.layout.names, told.layout.numbers, told.layout.queue_of)
        and (found.services, found.draining, list(found.holders)) == (told.services, told.draining, told.holders)
    )


def test_it_is_what_the_view_says(cluster) -> None:
    assert as_view_says(DatabaseStore().spread())
    assert as_view_says(DatabaseStore().spread()), "as it was kept"


def test_as_long_as_nothing_changes_no_partition_is_read(cluster, monkeypatch) -> None:
    first = DatabaseStore().spread()
    read = rows_read(monkeypatch)
    assert DatabaseStore().spread() == first
    assert not read


def test_when_one_has_another_owner_it_is_that_which_is_read(cluster, monkeypatch) -> None:
    before = DatabaseStore().spread()
    cluster.join("c")
    cluster.settle()
    read = rows_read(monkeypatch)
    after = DatabaseStore().spread()
    assert len(read) == 1
    assert "service_type" not in read[0]
    assert after.layout is before.layout
    assert set(after.holders) == {"a", "b", "c"}
    assert as_view_says(after)


def test_services_and_whether_they_drain_are_read_each_time(cluster) -> None:
    DatabaseStore().spread()
    cluster.store.set_draining("b", draining=True)
    assert DatabaseStore().spread().draining == {"b"}


def test_other_partitions_are_seen(cluster) -> None:
    DatabaseStore().spread()
    stamp = ClusterState.objects.get().stamp
    cluster.partitions = [*cluster.partitions, *partitions_named("More", "more", 2)]
    cluster.settle()
    assert ClusterState.objects.get().stamp not in ("", stamp)
    assert as_view_says(DatabaseStore().spread())


def test_partitions_that_want_something_else_are_seen(cluster) -> None:
    DatabaseStore().spread()
    cluster.partitions = partitions_named("Orders", "orders", 3, label="gpu")
    cluster.settle()
    found = DatabaseStore().spread()
    assert {queue.like.label for queue in found.layout.queues} == {"gpu"}
    assert as_view_says(found)


def test_one_that_came_since_the_stamp_was_read_is_seen(cluster) -> None:
    """As if another process had changed both between two statements of this one."""
    DatabaseStore().spread()
    Partition.objects.create(name="late.0", service_type="TB_CORE", queue="Late", number=0, tenant=UUID(int=9))
    ClusterState.objects.update(version=10**6)
    assert as_view_says(DatabaseStore().spread())


def test_without_a_stamp_nothing_is_kept(cluster) -> None:
    """As in an installation whose coordinator is of an earlier version."""
    ClusterState.objects.update(stamp="")
    DatabaseStore().spread()
    Partition.objects.filter(name="orders.0").update(label="gpu")
    assert as_view_says(DatabaseStore().spread())


def test_the_next_coordinator_stamps_what_is_there(cluster) -> None:
    ClusterState.objects.update(stamp="")
    again = FakeCluster(cluster.partitions, members=cluster.members)
    again.step()
    assert ClusterState.objects.get().stamp


def test_a_cluster_that_nobody_has_joined_yet(database) -> None:
    found = DatabaseStore().spread()
    assert (found.services, found.layout.names, list(found.holders)) == ({}, [], [])
