"""The cluster's rows as they are, read past Django: the test's own settings are of another installation."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import psycopg

_INSTANCES: Final = (
    "select service_id, incarnation, pid, gone_at is not null, lease_expires_at <= {now}, "
    "cast(lease_expires_at as text) from cluster_serviceinstance"
)
_PARTITIONS: Final = "select name, owner, epoch, target from cluster_partition where not is_removed"
_STATE: Final = "select coordinator, term from cluster_clusterstate"


class Instance(NamedTuple):
    service_id: str
    incarnation: str
    pid: int
    is_gone: bool
    is_expired: bool
    lease_expires_at: datetime


class Owned(NamedTuple):
    name: str
    owner: str | None
    epoch: int
    target: str | None


@dataclass(frozen=True, slots=True)
class Rows:
    instances: dict[str, Instance]
    partitions: tuple[Owned, ...]
    coordinator: str
    term: int

    def is_dead(self, service_id: str) -> bool:
        """Whether nobody waits for it any more."""
        return service_id not in self.instances or self.instances[service_id].is_gone

    def is_without(self, service_id: str) -> bool:
        """Whether all partitions are others'."""
        return all(one.owner not in (None, service_id) for one in self.partitions)

    def is_over(self, service_id: str) -> bool:
        """Whether its lease is, and whether anybody has noticed or not."""
        return self.is_dead(service_id) or self.instances[service_id].is_expired

    def is_settled(self, services: set[str]) -> bool:
        """Whether just these are there, and share all partitions evenly."""
        alive = {one.service_id for one in self.instances.values() if not one.is_gone and not one.is_expired}
        shares = Counter(one.owner for one in self.partitions)
        is_placed = all(one.owner == one.target in services for one in self.partitions)
        return alive == services == set(shares) and is_placed and max(shares.values()) - min(shares.values()) <= 1

    def told(self) -> str:
        """For who wants to know why it has not settled."""
        shares = Counter((one.owner, one.target) for one in self.partitions)
        return f"coordinator {self.coordinator} (term {self.term}), {self.instances}, owner and target: {dict(shares)}"


class ClusterDatabase(Protocol):
    """Where an installation has its leases."""

    # What hosts are told of it.
    url: str

    def read(self) -> Rows: ...


class SqliteDatabase:
    url = ""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "cluster.sqlite3"

    def read(self) -> Rows:
        with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as connection:
            return _rows(connection, "strftime('%Y-%m-%d %H:%M:%f', 'now')")

    @contextmanager
    def kept_busy(self) -> Iterator[None]:
        """Nobody else can write meanwhile, so no lease is renewed."""
        with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as connection:
            connection.execute("begin exclusive")
            yield
            connection.execute("rollback")


class PostgresDatabase:
    def __init__(self, url: str) -> None:
        self.url = url

    def read(self) -> Rows:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return _rows(connection, "now()")


def _rows(connection: Any, now: str) -> Rows:
    instances = [
        Instance(name, incarnation, pid, bool(is_gone), bool(is_expired), datetime.fromisoformat(until))
        for name, incarnation, pid, is_gone, is_expired, until in connection.execute(
            _INSTANCES.format(now=now)
        ).fetchall()
    ]
    partitions = tuple(Owned(*row) for row in connection.execute(_PARTITIONS).fetchall())
    coordinator, term = connection.execute(_STATE).fetchone() or ("", 0)
    return Rows({one.service_id: one for one in instances}, partitions, coordinator, term)
