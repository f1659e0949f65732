"""`persist-queue`: its `SQLiteQueue`, the fastest of its durable queues. Its file queue makes and renames a file for
every message that is put.

It has no batches: each `put` is a transaction. What is taken out is settled pack by pack with `task_done`.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import cast

from persistqueue import SQLiteQueue

from tests.benchmarks.workload import PACK, Tally, check_count, key_bytes, messages, rate

# Each waits for the disk, or does not: half a second and more at the rates it has.
_SYNCED_MESSAGES = 5_000
_MESSAGES = 50_000


def produce(*, sync: bool) -> Callable[[Path], float]:
    """`sync` makes each put durable, else it is handed to the system."""

    def measure(folder: Path) -> float:
        items = _items(_SYNCED_MESSAGES if sync else _MESSAGES)
        with closing(_open(folder, "full" if sync else "off")) as queue:
            result = rate(len(items), lambda: _put_all(queue, items))
            check_count("persist-queue", queue.size, len(items))
        return result

    return measure


def consume(folder: Path) -> float:
    """As durable as the `log` provider's own commits."""
    with closing(_open(folder, "off")) as queue:
        _put_all(queue, _items(_MESSAGES))
        _set_synchronous(queue, "normal")
        return rate(_MESSAGES, lambda: _take_all(queue))


def _open(folder: Path, synchronous: str) -> SQLiteQueue:
    queue = SQLiteQueue(str(folder), auto_commit=False)
    _set_synchronous(queue, synchronous)
    return queue


def _set_synchronous(queue: SQLiteQueue, synchronous: str) -> None:
    """Its own choice is `full`; there is no option for it."""
    cast("sqlite3.Connection", queue._putter).execute(f"pragma synchronous = {synchronous}")


def _items(count: int) -> list[tuple[bytes, bytes]]:
    return [(key_bytes(message), message.data) for message in messages(count)]


def _put_all(queue: SQLiteQueue, items: list[tuple[bytes, bytes]]) -> None:
    for item in items:
        queue.put(item)


def _take_all(queue: SQLiteQueue) -> None:
    tally = Tally("persist-queue", _MESSAGES)
    while not tally.is_complete:
        tally.take([queue.get_nowait()[1] for _ in range(min(PACK, queue.size))])
        queue.task_done()
    tally.check()
