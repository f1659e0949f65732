"""What becomes of others where one falls silent in the middle of a change of the cluster: suspended, or cut off."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.db import connection
from django.test import override_settings

from queueapi.cluster.rows import changing
from queueapi.cluster.store import DatabaseStore
from queueapi.config import config
from queuecore.cluster.services import ServiceInfo
from queuecore.cluster.store import Member
from queuecore.errors import StoreUnavailable
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.databases import on_database

LEASE_S = 0.6


@pytest.fixture
def store(transactional_db: None, postgres_url: str) -> Iterator[DatabaseStore]:
    """Where a lock is the session's, which may be anywhere."""
    with on_database(postgres_url):
        yield DatabaseStore()


class Silent(threading.Thread):
    """In the middle of a change until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_changing = threading.Event()
        self.goes_on = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with changing() as change:
                self.is_changing.set()
                self.goes_on.wait(DEADLINE_S)
                change.touch()
        except StoreUnavailable as error:
            self.error = error
        finally:
            DatabaseStore().close()


@contextmanager
def silent_for(lease_ms: int) -> Iterator[Silent]:
    """Another in the middle of a change, with this lease of the coordinator's."""
    cluster = replace(config().cluster, coordinator_lease_ms=lease_ms)
    one = Silent()
    with override_settings(SWITCHYARD=replace(config(), cluster=cluster)):
        one.start()
        assert one.is_changing.wait(DEADLINE_S)
        try:
            yield one
        finally:
            one.goes_on.set()
            one.join()


def join(store: DatabaseStore, name: str) -> Member:
    return store.join(ServiceInfo(name), host="here", pid=1, lease_s=LEASE_S)


def test_it_is_not_waited_for_longer_than_for_a_coordinator(store: DatabaseStore) -> None:
    version = store.version()
    with silent_for(500) as silent:
        join(store, "a")
        assert not silent.goes_on.is_set()
    assert "idle-in-transaction timeout" in str(silent.error)
    assert store.version() == version + 1, "what it did has no effect"


def test_who_waited_has_a_whole_lease_from_then_on(store: DatabaseStore) -> None:
    members: list[Member] = []

    def join_and_renew() -> None:
        members.append(join(store, "a"))
        store.renew(members[0], LEASE_S)
        store.close()

    with silent_for(60_000) as silent:
        waiting = threading.Thread(target=join_and_renew)
        waiting.start()
        wait_until(lambda: longest_wait_s() > 2 * LEASE_S)
        silent.goes_on.set()
        waiting.join()
    assert silent.error is None
    assert members
    assert store.gone() == {}


def longest_wait_s() -> float:
    """How long somebody has been waiting for another's lock, by the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select coalesce(max(extract(epoch from clock_timestamp() - query_start)), 0) from pg_stat_activity "
            "where wait_event_type = 'Lock'"
        )
        return float(cursor.fetchone()[0])
