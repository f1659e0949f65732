"""LMDB, with offsets for keys: a store that is known for its speed, without anything of a queue."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count, islice
from pathlib import Path

import lmdb

from queuecore.messages import QueueMessage
from tests.benchmarks.workload import MESSAGES, PACK, Tally, batches, check_count, key_bytes, messages, rate

_MAP_BYTES = 16 * 1024**3
_KEY_BYTES = 16
_POSITION = b"bench"


class Store:
    """Messages by their offsets, and the positions that consumers committed."""

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._env = lmdb.open(str(folder), map_size=_MAP_BYTES, max_dbs=2, sync=sync, readahead=True)
        self._messages = self._env.open_db(b"message")
        self._committed = self._env.open_db(b"committed")

    def append(self, first: int, batch: Sequence[QueueMessage]) -> None:
        """One transaction; durable when this returns where the store is one that syncs."""
        items = [
            (offset.to_bytes(8), key_bytes(message) + message.data)
            for offset, message in zip(count(first), batch, strict=False)
        ]
        with self._env.begin(self._messages, write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti(items, append=True)

    def packs(self) -> Iterator[list[tuple[bytes, bytes]]]:
        """Offset and data, pack by pack."""
        with self._env.begin(self._messages) as transaction, transaction.cursor() as cursor:
            entries = iter(cursor)
            while pack := [(offset, value[_KEY_BYTES:]) for offset, value in islice(entries, PACK)]:
                yield pack

    def commit(self, offset: bytes) -> None:
        with self._env.begin(self._committed, write=True) as transaction:
            transaction.put(_POSITION, offset)

    def last(self) -> int:
        with self._env.begin(self._messages) as transaction, transaction.cursor() as cursor:
            cursor.last()
            return int.from_bytes(cursor.key())

    def __len__(self) -> int:
        with self._env.begin(self._messages) as transaction:
            entries: int = transaction.stat(self._messages)["entries"]
            return entries

    def close(self) -> None:
        self._env.close()


def produce(*, sync: bool) -> Callable[[Path], float]:
    """One transaction per batch; `sync` makes each of them durable, else they are handed to the system."""

    def measure(folder: Path) -> float:
        sent = messages()
        with opened(folder, sync=sync) as store:
            result = rate(len(sent), lambda: append_all(store, sent))
            check_count("LMDB", len(store), len(sent))
        return result

    return measure


def consume(folder: Path) -> float:
    """Pack by pack, committing the position after each, no more durably than the `log` provider does."""
    with opened(folder, sync=False) as store:
        append_all(store, messages())
        return rate(MESSAGES, lambda: _read_all(store))


@contextmanager
def opened(folder: Path, *, sync: bool) -> Iterator[Store]:
    with closing(Store(folder, sync=sync)) as store:
        yield store


def append_all(store: Store, sent: Sequence[QueueMessage]) -> None:
    first = 0
    for batch in batches(sent):
        store.append(first, batch)
        first += len(batch)


def _read_all(store: Store) -> None:
    tally = Tally("LMDB", MESSAGES)
    for pack in store.packs():
        tally.take([data for _, data in pack])
        store.commit(pack[-1][0])
    tally.check()
