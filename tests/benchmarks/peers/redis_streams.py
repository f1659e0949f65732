"""Redis Streams, pipelined: the broker a small installation often has already."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import redis

from queuecore.messages import QueueMessage
from queuecore.testing.services import RedisService, ServiceError
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.workload import PACK, Tally, batches, check_count, key_bytes, messages, rate

STREAM = "bench"
BEGINNING = b"0"

# A second and more at the rates it has.
_MESSAGES = 100_000


class RedisStreams:
    """The measurements on one server, or the reason why there is none."""

    def __init__(self, url: str, unavailable: str = "") -> None:
        self.url = url
        self._unavailable = unavailable

    def produce(self, *, sync: bool) -> Callable[[Path], float]:
        """One pipeline per batch. `sync`: answered when on disk, else when handed to the system."""

        def measure(_folder: Path) -> float:
            sent = messages(_MESSAGES)
            self.empty("always" if sync else "no")
            with closing(redis.Redis.from_url(self.url)) as client:
                result = rate(len(sent), lambda: add_all(client, STREAM, sent))
                check_count("Redis", client.xlen(STREAM), len(sent))
            return result

        return measure

    def consume(self, _folder: Path) -> float:
        """Pack by pack, committing the position after each: leaner than a consumer group, which keeps a list of all
        that is not acknowledged."""
        self.empty("no")
        with closing(redis.Redis.from_url(self.url)) as client:
            add_all(client, STREAM, messages(_MESSAGES))
            return rate(_MESSAGES, lambda: read_all(client, STREAM, _MESSAGES))

    def empty(self, fsync: str) -> None:
        """Begin without data, and with this `appendfsync`. NotAvailable where there is no server."""
        if self._unavailable:
            raise NotAvailable(self._unavailable)
        with closing(redis.Redis.from_url(self.url)) as client:
            client.flushall()
            client.config_set("appendfsync", fsync)


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


def add_all(client: redis.Redis, stream: str, sent: Sequence[QueueMessage]) -> None:
    for batch in batches(sent):
        pipeline = client.pipeline(transaction=False)
        for message in batch:
            pipeline.xadd(stream, {b"k": key_bytes(message), b"d": message.data})
        pipeline.execute()


def read_all(client: redis.Redis, stream: str, expected: int) -> None:
    """The position is committed in the round trip that asks for the next pack."""
    tally = Tally("Redis", expected)
    position = BEGINNING
    while not tally.is_complete:
        pipeline = client.pipeline(transaction=False)
        pipeline.set(f"{stream}-position", position)
        pipeline.xread({stream: position}, count=PACK)
        position, data = last_and_data(pipeline.execute()[-1])
        tally.take(data)
    client.set(f"{stream}-position", position)
    tally.check()


def last_and_data(answer: Any) -> tuple[bytes, list[bytes]]:
    """Of an XREAD of one stream that found something: the last id, and what the entries hold. How the answer looks
    depends on the protocol that was agreed on."""
    if isinstance(answer, dict):
        [[entries]] = answer.values()
    else:
        [[_, entries]] = answer
    return entries[-1][0], [fields[b"d"] for _, fields in entries]
