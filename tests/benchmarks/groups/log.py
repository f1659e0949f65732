"""The `log` provider: sending and consuming 100-byte payloads on one partition, in one process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from queuecore.providers.options import Acks
from tests.benchmarks.log_provider import FIRST, consume_all, opened, send_all, subscribed
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers import lmdb_store, persist_queue, raw_file, sqlite_queue
from tests.benchmarks.peers.redis_streams import RedisStreams, redis_streams
from tests.benchmarks.workload import MESSAGES, RATE_UNIT, Tally, check_count, messages, rate


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    with redis_streams(folder / "redis") as streams:
        yield [_produce("1", 500_000, streams), _produce("all", 200_000, streams), _consume(1_000_000, streams)]


def _produce(acks: Acks, goal: float, streams: RedisStreams) -> Benchmark:
    sync = acks == "all"
    synchronous = "full" if sync else "off"
    return Benchmark(
        subject=Measurement(f"log produce acks={acks}", _measure_produce(acks)),
        peers=(
            Peer("write() + fdatasync()" if sync else "write()", raw_file.produce(sync=sync)),
            Peer(f"LMDB, sync={sync}", lmdb_store.produce(sync=sync)),
            Peer(f"SQLite, synchronous={synchronous}", sqlite_queue.produce(sync=sync), 1),
            Peer(f"Redis Streams, appendfsync {'always' if sync else 'no'}", streams.produce(sync=sync), 1),
            Peer(f"persist-queue, synchronous={synchronous}", persist_queue.produce(sync=sync), 1),
        ),
        unit=RATE_UNIT,
        goal=goal,
    )


def _consume(goal: float, streams: RedisStreams) -> Benchmark:
    return Benchmark(
        subject=Measurement("log consume", _measure_consume),
        peers=(
            Peer("read()", raw_file.consume),
            Peer("LMDB, position per pack", lmdb_store.consume),
            Peer("SQLite, position per pack", sqlite_queue.consume, 1),
            Peer("Redis Streams, position per pack", streams.consume, 1),
            Peer("persist-queue, task_done per pack", persist_queue.consume, 1),
        ),
        unit=RATE_UNIT,
        goal=goal,
    )


def _measure_produce(acks: Acks) -> Callable[[Path], float]:
    def measure(folder: Path) -> float:
        sent = messages()
        with opened(folder, acks) as provider:
            result = rate(MESSAGES, lambda: send_all(provider, sent))
            check_count("log", provider.admin().end_offsets([FIRST.place])[FIRST.place], MESSAGES)
        return result

    return measure


def _measure_consume(folder: Path) -> float:
    with opened(folder) as provider:
        send_all(provider, messages())
        with subscribed(provider) as consumer:
            return rate(MESSAGES, lambda: consume_all(consumer, Tally("log", MESSAGES)))
