"""More partitions, with a process for each: writers and readers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import redis

from tests.benchmarks.log_provider import consume_all, opened, send_all, subscribed
from tests.benchmarks.log_provider import partition as log_partition
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers.redis_streams import STREAM, RedisStreams, add_all, read_all, redis_streams
from tests.benchmarks.processes import run_together, took_s
from tests.benchmarks.workload import RATE_UNIT, Tally, check_count, messages

PROCESSES = (1, 2, 4)

# Of each process: half a second and more at the rates there are.
_MESSAGES = 300_000
_REDIS_MESSAGES = 50_000

Work = Callable[[], None]


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    with redis_streams(folder / "redis") as streams:
        yield [
            *(_scaling("writers", count, _write_log, _write_redis, streams) for count in PROCESSES),
            *(_scaling("readers", count, _read_log, _read_redis, streams) for count in PROCESSES),
        ]


def _scaling(
    who: str,
    count: int,
    log: Callable[[int, Path], float],
    peer: Callable[[int, RedisStreams], float],
    streams: RedisStreams,
) -> Benchmark:
    return Benchmark(
        subject=Measurement(f"log, {count} {who}", partial(log, count)),
        peers=(Peer("Redis Streams", lambda _folder: peer(count, streams), 1),),
        unit=RATE_UNIT,
    )


def _write_log(count: int, folder: Path) -> float:
    with opened(folder, partitions=count):
        pass
    outcomes = run_together([partial(_log_writer, folder, number) for number in range(count)])
    with opened(folder) as provider:
        ends = provider.admin().end_offsets([log_partition(number).place for number in range(count)])
        check_count("log", sum(ends.values()), count * _MESSAGES)
    return count * _MESSAGES / took_s(outcomes)


def _read_log(count: int, folder: Path) -> float:
    with opened(folder, partitions=count) as provider:
        for number in range(count):
            send_all(provider, messages(_MESSAGES), log_partition(number))
    outcomes = run_together([partial(_log_reader, folder, number) for number in range(count)])
    return count * _MESSAGES / took_s(outcomes)


def _write_redis(count: int, streams: RedisStreams) -> float:
    streams.empty("no")
    outcomes = run_together([partial(_redis_writer, streams.url, number) for number in range(count)])
    with closing(redis.Redis.from_url(streams.url)) as client:
        check_count("Redis", sum(client.xlen(_stream(number)) for number in range(count)), count * _REDIS_MESSAGES)
    return count * _REDIS_MESSAGES / took_s(outcomes)


def _read_redis(count: int, streams: RedisStreams) -> float:
    streams.empty("no")
    with closing(redis.Redis.from_url(streams.url)) as client:
        for number in range(count):
            add_all(client, _stream(number), messages(_REDIS_MESSAGES))
    outcomes = run_together([partial(_redis_reader, streams.url, number) for number in range(count)])
    return count * _REDIS_MESSAGES / took_s(outcomes)


@contextmanager
def _log_writer(folder: Path, number: int) -> Iterator[Work]:
    sent = messages(_MESSAGES)
    with opened(folder) as provider:
        yield lambda: send_all(provider, sent, log_partition(number))


@contextmanager
def _log_reader(folder: Path, number: int) -> Iterator[Work]:
    info = log_partition(number)
    with opened(folder) as provider, subscribed(provider, info) as consumer:
        yield lambda: consume_all(consumer, Tally("log", _MESSAGES), info)


@contextmanager
def _redis_writer(url: str, number: int) -> Iterator[Work]:
    sent = messages(_REDIS_MESSAGES)
    with closing(redis.Redis.from_url(url)) as client:
        yield lambda: add_all(client, _stream(number), sent)


@contextmanager
def _redis_reader(url: str, number: int) -> Iterator[Work]:
    with closing(redis.Redis.from_url(url)) as client:
        yield lambda: read_all(client, _stream(number), _REDIS_MESSAGES)


def _stream(number: int) -> str:
    return f"{STREAM}-{number}"
