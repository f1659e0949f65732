"""Opening a log of many segments: to the last record read and the first one appended."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import encode_body
from queuecore.providers.log.writer import PartitionWriter
from queuecore.providers.options import ProducerOptions
from tests.benchmarks.log_provider import FIRST, opened, send_all
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers import lmdb_store, sqlite_queue
from tests.benchmarks.workload import check_count, messages, settle

SEGMENTS = 1_000
_SEGMENT_MESSAGES = 100
_MESSAGES = SEGMENTS * _SEGMENT_MESSAGES


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    """Each of the stores gets the same messages, once, before the rounds."""
    many, one, sqlite, lmdb = (folder / name for name in ("many", "one", "sqlite", "lmdb"))
    for path in (many, one, sqlite, lmdb):
        path.mkdir(parents=True)
    _fill_log(many, segment_bytes=1)
    _fill_log(one, segment_bytes=_MESSAGES * 1_000)
    with closing(sqlite_queue.connect(sqlite, sync=False)) as db:
        sqlite_queue.insert(db, messages(_MESSAGES))
    with lmdb_store.opened(lmdb, sync=False) as store:
        lmdb_store.append_all(store, messages(_MESSAGES))
    yield [
        Benchmark(
            subject=Measurement(f"log open, {SEGMENTS:,} segments", _timed(_open_log, many)),
            peers=(
                Peer("log of 1 segment", _timed(_open_log, one)),
                Peer("SQLite", _timed(_open_sqlite, sqlite)),
                Peer("LMDB", _timed(_open_lmdb, lmdb)),
            ),
            unit="ms",
            goal=100,
            better="lower",
        )
    ]


def _timed(work: Callable[[Path], int], folder: Path) -> Callable[[Path], float]:
    """Milliseconds to open what is in the folder; each time finds one message more."""
    stored = _MESSAGES

    def measure(_folder: Path) -> float:
        nonlocal stored
        settle()
        started = time.perf_counter()
        last = work(folder)
        took_ms = (time.perf_counter() - started) * 1000
        check_count(f"{folder.name}, messages", last, stored)
        stored += 1
        return took_ms

    return measure


def _open_log(folder: Path) -> int:
    with closing(LogProvider(folder, ProducerOptions(acks="1"))) as provider:
        end = provider.admin().end_offsets([FIRST.place])[FIRST.place]
        with closing(provider.reader()) as reader:
            [last] = reader.read(FIRST.place, end - 1, 1)
        send_all(provider, messages(1))
    return last.offset + 1


def _open_sqlite(folder: Path) -> int:
    with closing(sqlite_queue.connect(folder, sync=False)) as db:
        last = sqlite_queue.last_position(db)
        sqlite_queue.insert(db, messages(1))
    return last


def _open_lmdb(folder: Path) -> int:
    with lmdb_store.opened(folder, sync=False) as store:
        last = store.last()
        store.append(last + 1, messages(1))
    return last + 1


def _fill_log(folder: Path, segment_bytes: int) -> None:
    """Written past the provider, which makes no segments as small as these."""
    with opened(folder):
        pass
    sent = messages(_MESSAGES)
    with closing(PartitionWriter(folder, FIRST.place, segment_bytes)) as writer:
        for start in range(0, _MESSAGES, _SEGMENT_MESSAGES):
            writer.append(encode_body(sent[start : start + _SEGMENT_MESSAGES]), 0, sync=False)
