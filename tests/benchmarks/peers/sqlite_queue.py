"""SQLite as a queue: what a team without a broker would build."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from queuecore.messages import QueueMessage
from tests.benchmarks.workload import MESSAGES, PACK, Tally, batches, check_count, key_bytes, messages, rate

_SCHEMA = """
create table if not exists message (
    position integer primary key, sent_ms integer not null, key blob, data blob not null
) strict;
create table if not exists committed (consumer text primary key, position integer not null) strict;
insert or ignore into committed values ('bench', 0);
"""


def produce(*, sync: bool) -> Callable[[Path], float]:
    """One transaction per batch; `sync` makes each of them durable, else they are handed to the system."""

    def measure(folder: Path) -> float:
        sent = messages()
        with closing(connect(folder, sync=sync)) as db:
            result = rate(len(sent), lambda: insert(db, sent))
            check_count("SQLite", db.execute("select count(*) from message").fetchone()[0], len(sent))
        return result

    return measure


def consume(folder: Path) -> float:
    """Pack by pack, committing the position after each, as durable as the `log` provider's own commits."""
    with closing(connect(folder, sync=False)) as db:
        insert(db, messages())
        db.execute("pragma synchronous = normal")
        return rate(MESSAGES, lambda: _read_all(db))


def connect(folder: Path, *, sync: bool) -> sqlite3.Connection:
    db = sqlite3.connect(folder / "queue.sqlite3", isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute(f"pragma synchronous = {'full' if sync else 'off'}")
    db.executescript(_SCHEMA)
    return db


def insert(db: sqlite3.Connection, sent: Sequence[QueueMessage]) -> None:
    for batch in batches(sent):
        db.execute("begin immediate")
        db.executemany("insert into message (sent_ms, key, data) values (0, ?, ?)", _rows(batch))
        db.execute("commit")


def last_position(db: sqlite3.Connection) -> int:
    position: int = db.execute("select max(position) from message").fetchone()[0]
    return position


def _rows(batch: Iterable[QueueMessage]) -> Iterable[tuple[bytes, bytes]]:
    return ((key_bytes(message), message.data) for message in batch)


def _read_all(db: sqlite3.Connection) -> None:
    tally = Tally("SQLite", MESSAGES)
    position = 0
    while rows := _read_pack(db, position):
        tally.take([row[3] for row in rows])
        position = rows[-1][0]
        db.execute("update committed set position = ? where consumer = 'bench'", (position,))
    tally.check()


def _read_pack(db: sqlite3.Connection, position: int) -> list[tuple[int, int, bytes, bytes]]:
    query = "select position, sent_ms, key, data from message where position > ? order by position limit ?"
    return db.execute(query, (position, PACK)).fetchall()
