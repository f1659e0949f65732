"""Redis Streams, pipelined: the broker a small installation often has already."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import redis

from queuecore.messages import QueueMessage
from queuecore.testing.services import RedisService, ServiceError
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.workload import MESSAGES, PACK, batches, check_count, key_bytes, messages, rate

STREAM = "bench"
GROUP = "readers"


class RedisStreams:
    """The measurements on one server, or the reason why there is none."""

    def __init__(self, url: str, unavailable: str = "") -> None:
        self._url = url
        self._unavailable = unavailable

    def produce(self, *, sync: bool) -> Callable[[Path], float]:
        """One pipeline per batch. `sync`: answered when on disk, else when handed to the system."""

        def measure(_folder: Path) -> float:
            sent = messages()
            with closing(self._emptied("always" if sync else "no")) as client:
                result = rate(MESSAGES, lambda: _add(client, sent))
                check_count("Redis", client.xlen(STREAM))
            return result

        return measure

    def consume(self, _folder: Path) -> float:
        """Pack by pack through a consumer group; each acknowledged in the round trip that asks for the next."""
        with closing(self._emptied("no")) as client:
            _add(client, messages())
            client.xgroup_create(STREAM, GROUP, id="0")
            return rate(MESSAGES, lambda: _read_all(client))

    def _emptied(self, fsync: str) -> redis.Redis:
        if self._unavailable:
            raise NotAvailable(self._unavailable)
        client = redis.Redis.from_url(self._url)
        client.flushall()
        client.config_set("appendfsync", fsync)
        return client


@contextmanager
def redis_streams(folder: Path) -> Iterator[RedisStreams]:
    """A server of its own that keeps an append-only file under `folder`."""
    service = RedisService(folder)
    try:
        service.start()
    except ServiceError as error:
        yield RedisStreams("", unavailable=str(error))
        return
    try:
        yield RedisStreams(service.url)
    finally:
        service.erase()


def _add(client: redis.Redis, sent: list[QueueMessage]) -> None:
    for batch in batches(sent):
        pipeline = client.pipeline(transaction=False)
        for message in batch:
            pipeline.xadd(STREAM, {b"k": key_bytes(message), b"d": message.data})
        pipeline.execute()


def _read_all(client: redis.Redis) -> None:
    count = 0
    done: list[bytes] = []
    while entries := _acknowledge_and_read(client, done):
        count += len(entries)
        done = entries
    check_count("Redis", count)


def _acknowledge_and_read(client: redis.Redis, done: list[bytes]) -> list[bytes]:
    """Ids of the next pack."""
    pipeline = client.pipeline(transaction=False)
    if done:
        pipeline.xack(STREAM, GROUP, *done)
    pipeline.xreadgroup(GROUP, "bench", {STREAM: ">"}, count=PACK)
    answer = pipeline.execute()[-1]
    streams = answer.values() if isinstance(answer, dict) else [entries for _, entries in answer]
    return [entry[0] for entries in streams for entry in entries]
