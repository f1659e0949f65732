"""The SQLite file beside the segments: topics, offsets, groups, producers and transactions."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock

from queuecore.errors import ForeignFile, ProviderUnavailable
from queuecore.providers.log.files import locked

CATALOG = "catalog.sqlite3"
# 2: commits have epochs.
VERSION = 2
_APPLICATION = 0x53574C47  # "SWLG", so that another program's database is not taken for ours
_BUSY_TIMEOUT_S = 30

_SCHEMA = """
create table if not exists topic (
    name text primary key,
    partitions integer not null check (partitions > 0),
    retention_ms integer not null,
    retention_bytes integer not null,
    segment_bytes integer not null,
    cleanup text not null check (cleanup in ('delete', 'compact', 'compact,delete'))
) strict;
create table if not exists committed (
    consumer_group text not null, topic text not null, partition integer not null,
    position integer not null check (position >= 0),
    epoch integer,
    primary key (consumer_group, topic, partition)
) strict, without rowid;
create table if not exists member_group (
    name text primary key, version integer not null, state text not null
) strict;
create table if not exists producer (
    id integer primary key autoincrement,
    transactional_id text unique, epoch integer not null default 0
) strict;
create table if not exists pending (
    id integer primary key,
    producer integer not null unique references producer (id),
    epoch integer not null,
    deadline_ms integer not null
) strict;
create table if not exists done (
    first integer primary key, last integer not null check (last >= first)
) strict;
create table if not exists transaction_number (
    only integer primary key check (only = 1), last integer not null
) strict;
insert or ignore into transaction_number values (1, 0);
create table if not exists compacted (
    topic text not null, partition integer not null, position integer not null,
    primary key (topic, partition)
) strict, without rowid;
"""


class Database:
    """One connection that the threads of a process take turns with. Other processes have theirs."""

    def __init__(self, root: Path) -> None:
        self.path = root / CATALOG
        self._refuse_foreign(*_marks(self.path))
        root.mkdir(parents=True, exist_ok=True)
        # Who has its turn may look things up.
        self._lock = RLock()
        # SQLite does not wait for its turn to switch to WAL, so processes that start together take turns here.
        with locked(root / "catalog.lock"):
            self._db = sqlite3.connect(
                self.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            yield self._db

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction that is committed at the end, or rolled back when anything is raised. Durable: on disk when
        this returns, whatever happens to the machine; else a power cut may undo the last ones, and nothing else."""
        with self._lock, self._explained():
            if durable:
                self._db.execute("pragma synchronous = full")
            try:
                self._db.execute("begin immediate")
                yield self._db
                self._db.execute("commit")
            finally:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                if durable:
                    self._db.execute("pragma synchronous = normal")

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _prepare(self) -> None:
        if not self._pragma("application_id"):
            # Before anything else, and in the file itself: `_marks` must find it there.
            self._db.execute(f"pragma application_id = {_APPLICATION}")
        self._refuse_foreign(_APPLICATION, self._pragma("user_version"))
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = normal")
        self._db.executescript(_SCHEMA)
        self._upgrade()
        self._db.execute(f"pragma user_version = {VERSION}")

    def _upgrade(self) -> None:
        """Bring the tables of an earlier version up to date. By how they look: whoever began with it may have been
        killed. A process of that version that has the file open cannot commit any more, having no epochs to compare."""
        if "epoch" not in {row[1] for row in self._db.execute("pragma table_info(committed)")}:
            self._db.execute("alter table committed add column epoch integer")

    def _refuse_foreign(self, application: int, version: int) -> None:
        if application != _APPLICATION:
            raise ForeignFile(
                f"{self.path} is not a catalog of this version of Switchyard's log; nothing was changed. Choose "
                "another folder, or move the file away",
                file=str(self.path),
            )
        if version > VERSION:
            raise ForeignFile(
                f"{self.path} was written by version {version} of the catalog, this is version {VERSION}; nothing was "
                "changed. Use the newer Switchyard",
                file=str(self.path),
            )

    def _pragma(self, name: str) -> int:
        value: int = self._db.execute(f"pragma {name}").fetchone()[0]
        return value

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ProviderUnavailable(
                f"the catalog {self.path} cannot be used: {error}; check that its folder can be written"
            ) from error


def _marks(path: Path) -> tuple[int, int]:
    """Application and version that the file says it is of, asked such that nothing is written beside it. Those of a
    new catalog where there is none yet; no application's where it is not a database."""
    if not path.exists() or not path.stat().st_size:
        return _APPLICATION, 0
    # By SQLite and not by opening the file: closing it would drop the locks of another connection of this process.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        try:
            (application,) = db.execute("pragma application_id").fetchone()
            (version,) = db.execute("pragma user_version").fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                return 0, 0
            # Somebody may be writing to it right now, whom we did not wait for. Who opens it in earnest will see.
            return _APPLICATION, 0
    return application, version
