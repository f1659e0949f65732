"""Ways to cut hosts off from the database that has their leases."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from tests.reliability.cluster_proxy import Proxy
from tests.reliability.cluster_rows import PostgresDatabase, Rows, SqliteDatabase


class Cuts(Protocol):
    def url(self, service_id: str) -> str:
        """The database's address for this host."""

    @contextmanager
    def cut(self, service_id: str, chance: random.Random) -> Iterator[Callable[[Rows], bool]]:
        """Meanwhile that host, at least, cannot renew its lease. Tells by the rows whether that has lasted too long
        for it."""


class SqliteCuts:
    """All hosts have the same file."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def url(self, service_id: str) -> str:
        return self._database.url

    @contextmanager
    def cut(self, service_id: str, chance: random.Random) -> Iterator[Callable[[Rows], bool]]:
        with self._database.kept_busy():
            yield lambda rows: all(rows.is_over(name) for name in rows.instances)


class PostgresCuts:
    """Each host has a way of its own. Used as a block, at whose end they are no more."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._ways: dict[str, Proxy] = {}
        self._open = ExitStack()

    def __enter__(self) -> "PostgresCuts":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def url(self, service_id: str) -> str:
        if service_id not in self._ways:
            self._ways[service_id] = self._open.enter_context(Proxy(self._database.url))
        return self._ways[service_id].url

    @contextmanager
    def cut(self, service_id: str, chance: random.Random) -> Iterator[Callable[[Rows], bool]]:
        way = self._ways[service_id]
        way.cut(silently=chance.random() < 0.5)
        try:
            yield lambda rows: rows.is_dead(service_id)
        finally:
            way.mend()
