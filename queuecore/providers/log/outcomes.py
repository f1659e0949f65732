"""What became of transactions.

A transaction is committed by one row in the catalog and by nothing else; what has no row was aborted (or never was).
Numbers are given in order, so committed ones are kept as ranges: however many there were, a few rows hold them.
"""

import sqlite3
import threading
from collections.abc import Iterator

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProducerFenced, TransactionAborted
from queuecore.providers.log.database import Database

_MAX_CACHED = 100_000
_RESERVED_AT_ONCE = 1_000


class Outcomes:
    """Safe from any thread. Final outcomes are remembered; what is open is asked for again."""

    def __init__(self, database: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self._database = database
        self._clock = clock
        self._final: dict[int, bool] = {}
        self._lock = threading.Lock()

    def __call__(self, transaction: int) -> bool | None:
        """Whether it was committed; None while that is not decided."""
        known = self._final.get(transaction)
        if known is not None:
            return known
        with self._database.reading() as db:
            # In this order: one that is committed between the two questions was still pending in the first.
            deadline_ms = _deadline(db, transaction)
            if deadline_ms is not None:
                if deadline_ms >= self._clock.now_ms():
                    return None
                # Open for too long. Unless its producer was faster, it cannot commit any more.
                abort(self._database, transaction)
            outcome = _is_done(db, transaction)
        with self._lock:
            if len(self._final) >= _MAX_CACHED:
                self._final.clear()
            self._final[transaction] = outcome
        return outcome


def new_producer(database: Database) -> int:
    """An id that no producer ever had."""
    with database.writing() as db:
        number = db.execute("insert into producer default values returning id").fetchone()[0]
        db.execute("delete from producer where id = ?", (number,))
    return int(number)


def take_over(database: Database, transactional_id: str) -> tuple[int, int]:
    """Producer id and epoch for this transactional id. Whoever had it before is fenced, and what it left open is
    aborted."""
    with database.writing(durable=True) as db:
        db.execute("insert or ignore into producer (transactional_id) values (?)", (transactional_id,))
        producer, epoch = db.execute(
            "update producer set epoch = epoch + 1 where transactional_id = ? returning id, epoch", (transactional_id,)
        ).fetchone()
        db.execute("delete from pending where producer = ?", (producer,))
    return producer, epoch


def reserve(database: Database) -> Iterator[int]:
    """Transaction numbers that nobody else will ever have. Reserved durably, a block at a time: were a number given
    twice, records of an aborted transaction would come back with the second one's commit."""
    while True:
        with database.writing(durable=True) as db:
            (last,) = db.execute(
                "update transaction_number set last = last + ? returning last", (_RESERVED_AT_ONCE,)
            ).fetchone()
        yield from range(last - _RESERVED_AT_ONCE + 1, last + 1)


def begin(database: Database, transaction: int, producer: int, epoch: int, deadline_ms: int) -> None:
    with database.writing() as db:
        _refuse_fenced(db, producer, epoch)
        db.execute("delete from pending where producer = ?", (producer,))
        db.execute("insert into pending values (?, ?, ?, ?)", (transaction, producer, epoch, deadline_ms))


def finish(db: sqlite3.Connection, transaction: int, producer: int, epoch: int, now_ms: int) -> None:
    """The commit point, within the caller's database transaction."""
    _refuse_fenced(db, producer, epoch)
    row = db.execute("delete from pending where id = ? returning deadline_ms", (transaction,)).fetchone()
    if row is None or row[0] < now_ms:
        raise TransactionAborted(
            f"transaction {transaction} was open for too long and is aborted; nothing of it took effect. Begin again"
        )
    extended = db.execute("update done set last = ? where last = ?", (transaction, transaction - 1)).rowcount
    if not extended:
        db.execute("insert into done values (?, ?)", (transaction, transaction))
    _join_following(db, transaction)


def abort(database: Database, transaction: int) -> None:
    with database.writing() as db:
        db.execute("delete from pending where id = ?", (transaction,))


def _join_following(db: sqlite3.Connection, transaction: int) -> None:
    """Make one range of two where this transaction closed the gap between them."""
    following = db.execute("delete from done where first = ? returning last", (transaction + 1,)).fetchone()
    if following is not None:
        db.execute("update done set last = ? where last = ?", (following[0], transaction))


def _refuse_fenced(db: sqlite3.Connection, producer: int, epoch: int) -> None:
    row = db.execute("select transactional_id, epoch from producer where id = ?", (producer,)).fetchone()
    if row is None or row[1] != epoch:
        raise ProducerFenced(
            f"a newer producer has the transactional id {row[0] if row else '?'!r}; this one can do nothing more",
            producer=producer,
        )


def _deadline(db: sqlite3.Connection, transaction: int) -> int | None:
    """Until when it may commit; None where it is over."""
    row = db.execute("select deadline_ms from pending where id = ?", (transaction,)).fetchone()
    return None if row is None else row[0]


def _is_done(db: sqlite3.Connection, transaction: int) -> bool:
    row = db.execute("select last from done where first <= ? order by first desc limit 1", (transaction,)).fetchone()
    return row is not None and row[0] >= transaction
