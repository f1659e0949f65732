"""Topics and committed offsets, in a SQLite file beside the segments."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from queuecore.errors import ProviderUnavailable, UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.log.files import locked
from queuecore.topics import ProviderPartition

_SCHEMA = """
create table if not exists topic (
    name text primary key, partitions integer not null check (partitions > 0), retention_ms integer not null
) strict;
create table if not exists committed (
    consumer_group text not null, topic text not null, partition integer not null,
    position integer not null check (position >= 0),
    primary key (consumer_group, topic, partition)
) strict, without rowid;
"""
_BUSY_TIMEOUT_S = 30


class Catalog:
    """Safe from any thread of the process that opened it, and beside other processes."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._path = root / "catalog.sqlite3"
        self._lock = Lock()
        # SQLite does not wait for its turn to switch to WAL, so processes that start together take turns here.
        with locked(root / "catalog.lock"):
            self._db = sqlite3.connect(
                self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = normal")
            self._db.executescript(_SCHEMA)

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        rows = [(spec.name, spec.partitions, spec.retention_ms) for spec in specs]
        with self._database() as db:
            db.executemany("insert or ignore into topic values (?, ?, ?)", rows)

    def topics(self) -> dict[str, TopicSpec]:
        with self._database() as db:
            rows = db.execute("select name, partitions, retention_ms from topic order by name").fetchall()
        return {name: TopicSpec(name, partitions, retention) for name, partitions, retention in rows}

    def topic(self, name: str) -> TopicSpec:
        with self._database() as db:
            row = db.execute("select name, partitions, retention_ms from topic where name = ?", (name,)).fetchone()
        if row is None:
            raise UnknownTopic(f"topic {name!r} does not exist; create it first", topic=name)
        return TopicSpec(*row)

    def topic_of(self, place: ProviderPartition) -> TopicSpec:
        """The topic, or UnknownTopic where it or this partition of it does not exist."""
        spec = self.topic(place.topic)
        if not 0 <= place.partition < spec.partitions:
            raise UnknownTopic(
                f"topic {spec.name!r} has partitions 0 to {spec.partitions - 1}; there is no {place.partition}",
                topic=spec.name,
            )
        return spec

    def commit(self, group: str, offsets: Mapping[ProviderPartition, int]) -> None:
        rows = [(group, place.topic, place.partition, offset) for place, offset in offsets.items()]
        with self._database() as db:
            db.execute("begin immediate")
            try:
                db.executemany("insert or replace into committed values (?, ?, ?, ?)", rows)
                db.execute("commit")
            finally:
                if db.in_transaction:
                    db.execute("rollback")

    def committed(self, group: str) -> dict[ProviderPartition, int]:
        with self._database() as db:
            rows = db.execute(
                "select topic, partition, position from committed where consumer_group = ?", (group,)
            ).fetchall()
        return {ProviderPartition(topic, partition): position for topic, partition, position in rows}

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except sqlite3.Error as error:
                raise ProviderUnavailable(
                    f"the catalog {self._path} cannot be used: {error}; check that its folder can be written"
                ) from error
