"""From sending in one process to having the record in another that waits for it."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import redis

from queuecore.messages import QueueMessage
from tests.benchmarks.log_provider import FIRST, opened, subscribed
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.peers.redis_streams import STREAM, RedisStreams, last_and_data, redis_streams
from tests.benchmarks.processes import Job, run_together
from tests.benchmarks.workload import PACK, PAYLOAD_BYTES, check_count

_MESSAGES = 2_000
_EVERY_S = 0.001
# What comes before the first send is no latency: processes warm up.
_WARM_UP = 100
_POLL_MS = 10_000


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    with redis_streams(folder / "redis") as streams:
        yield [_latency(50, streams), _latency(99, streams)]


def _latency(percentile: int, streams: RedisStreams) -> Benchmark:
    return Benchmark(
        subject=Measurement(f"log send to poll, p{percentile}", _measure_log(percentile)),
        peers=(Peer("Redis Streams, XREAD BLOCK", _measure_redis(percentile, streams), 1),),
        unit="µs",
        better="lower",
    )


def _measure_log(percentile: int) -> Callable[[Path], float]:
    def measure(folder: Path) -> float:
        with opened(folder):
            pass
        return _run(partial(_log_receiver, folder), partial(_log_sender, folder), percentile)

    return measure


def _measure_redis(percentile: int, streams: RedisStreams) -> Callable[[Path], float]:
    def measure(_folder: Path) -> float:
        streams.empty("no")
        return _run(partial(_redis_receiver, streams.url), partial(_redis_sender, streams.url), percentile)

    return measure


def _run(receiver: Job, sender: Job, percentile: int) -> float:
    received, _ = run_together([receiver, sender])
    latencies_us: list[float] = received.result
    check_count("latencies", len(latencies_us), _MESSAGES)
    return statistics.quantiles(latencies_us[_WARM_UP:], n=100)[percentile - 1]


@contextmanager
def _log_sender(folder: Path) -> Iterator[Callable[[], None]]:
    with opened(folder) as provider:
        producer = provider.producer()
        yield lambda: _send_paced(lambda data: producer.send(FIRST, QueueMessage(None, data), _fail_on_error))


@contextmanager
def _log_receiver(folder: Path) -> Iterator[Callable[[], list[float]]]:
    with opened(folder) as provider, subscribed(provider) as consumer:
        yield lambda: _latencies_us(lambda: [record.data for record in consumer.poll(_POLL_MS)])


@contextmanager
def _redis_sender(url: str) -> Iterator[Callable[[], None]]:
    with closing(redis.Redis.from_url(url)) as client:
        yield lambda: _send_paced(lambda data: client.xadd(STREAM, {b"d": data}))


@contextmanager
def _redis_receiver(url: str) -> Iterator[Callable[[], list[float]]]:
    position = b"0"

    def poll() -> list[bytes]:
        nonlocal position
        position, data = last_and_data(client.xread({STREAM: position}, count=PACK, block=_POLL_MS))
        return data

    with closing(redis.Redis.from_url(url)) as client:
        yield lambda: _latencies_us(poll)


def _send_paced(send: Callable[[bytes], object]) -> None:
    for _ in range(_MESSAGES):
        time.sleep(_EVERY_S)
        send(time.perf_counter_ns().to_bytes(8).ljust(PAYLOAD_BYTES, b"."))


def _latencies_us(poll: Callable[[], list[bytes]]) -> list[float]:
    """One per message; fewer when nothing came for as long as a poll waits. The processes share the clock."""
    found: list[float] = []
    while len(found) < _MESSAGES and (arrived := poll()):
        now = time.perf_counter_ns()
        found += ((now - int.from_bytes(data[:8])) / 1000 for data in arrived)
    return found


def _fail_on_error(_metadata: object, error: Exception | None) -> None:
    if error is not None:
        raise error
