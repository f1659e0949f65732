"""Both databases that an installation may have: a test that asks for `database` runs on each of them, unless all run on
PostgreSQL (see `tests.environment`)."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import dj_database_url
import pytest
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections
from django.test.utils import CaptureQueriesContext

from queueapi.cluster.databases import APP as CLUSTER
from queuecore.testing.services import PostgresService
from tests.environment import DATABASE, DATABASE_URL


@contextmanager
def on_database(url: str) -> Iterator[None]:
    """Meanwhile the default database is the one at this address, for all threads, and has the cluster's tables too."""
    before = connections.settings[DEFAULT_DB_ALIAS]
    cluster = connections.settings.pop(CLUSTER, None)
    _replace_default(connections.configure_settings({DEFAULT_DB_ALIAS: dict(dj_database_url.parse(url))})["default"])
    try:
        yield
    finally:
        if cluster is not None:
            connections.settings[CLUSTER] = cluster
        _replace_default(before)


@contextmanager
def all_queries() -> Iterator[list[str]]:
    """Filled at the end with what was asked, of all databases that there are."""
    asked: list[str] = []
    with ExitStack() as stack:
        contexts = [stack.enter_context(CaptureQueriesContext(one)) for one in connections.all()]
        yield asked
    asked += [query["sql"] for context in contexts for query in context.captured_queries]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker) -> Iterator[None]:
    """Between tests all tables are emptied, which the audit's does not allow on SQLite.
    `tests/integration/test_audit.py` has it refuse that. PostgreSQL removes no database that somebody has open, as
    threads that wait for work do."""
    if DATABASE == "sqlite":
        _execute(django_db_blocker, "drop trigger if exists audit_never_removed")
    yield
    if DATABASE == "postgresql":
        others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        _execute(django_db_blocker, f"select pg_terminate_backend(pid) {others}")


@pytest.fixture(scope="session")
def postgres_url(postgres_service: PostgresService, django_db_blocker) -> str:
    """A PostgreSQL database with all tables."""
    with django_db_blocker.unblock(), on_database(postgres_service.url):
        call_command("migrate", verbosity=0)
    return postgres_service.url


@pytest.fixture(params=["sqlite", "postgresql"] if DATABASE == "sqlite" else ["postgresql"])
def database(request: pytest.FixtureRequest, transactional_db) -> Iterator[str]:
    """The name of the database that the test runs on. Ask for it before anything that writes."""
    if request.param == DATABASE:
        yield request.param
        return
    with on_database(request.getfixturevalue("postgres_url")):
        yield request.param
        call_command("flush", verbosity=0, interactive=False)


def _execute(django_db_blocker, statement: str) -> None:
    with django_db_blocker.unblock(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(statement)


def _replace_default(settings: dict) -> None:
    connections[DEFAULT_DB_ALIAS].close()
    connections.settings[DEFAULT_DB_ALIAS] = settings
    del connections[DEFAULT_DB_ALIAS]


def pytest_configure() -> None:
    """The settings have read it. Threads that tests start end without a word: what they leave open on PostgreSQL, the
    garbage collector warns of in whichever test it runs."""
    os.environ.pop(DATABASE_URL, None)
    if DATABASE == "postgresql":
        threading.Thread.run = _closing(threading.Thread.run)


def _closing(run: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def run_and_close(thread: threading.Thread) -> None:
        try:
            run(thread)
        finally:
            connections.close_all()

    return run_and_close


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever may use a database may use all that an installation has."""
    for item in items:
        marker = item.get_closest_marker("django_db")
        if marker is not None or {"db", "transactional_db"} & set(getattr(item, "fixturenames", ())):
            options = {} if marker is None else marker.kwargs
            item.add_marker(pytest.mark.django_db(**{"databases": "__all__", **options}), append=False)
