"""The least anything durable can cost: the same bytes as the `log` provider, by plain system calls."""

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from queuecore.messages import QueueMessage
from queuecore.providers.log.batch import ANONYMOUS, encode_body
from tests.benchmarks.workload import BATCH, MESSAGES, batches, check_count, messages, rate

_CHUNK_BYTES = 2 * 1024 * 1024


def produce(*, sync: bool) -> Callable[[Path], float]:
    """Write batches that were encoded beforehand, each followed by fdatasync where `sync` is set."""

    def measure(folder: Path) -> float:
        encoded = _encoded()
        descriptor = os.open(folder / "data", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

        def work() -> None:
            for batch in encoded:
                os.write(descriptor, batch)
                if sync:
                    os.fdatasync(descriptor)

        try:
            result = rate(MESSAGES, work)
            check_count("write(), bytes", os.fstat(descriptor).st_size, sum(map(len, encoded)))
        finally:
            os.close(descriptor)
        return result

    return measure


def consume(folder: Path) -> float:
    """Read the file from its beginning to its end, without looking at what is in it."""
    path = folder / "data"
    path.write_bytes(b"".join(_encoded()))
    descriptor = os.open(path, os.O_RDONLY)

    def work() -> None:
        while os.read(descriptor, _CHUNK_BYTES):
            pass

    try:
        return rate(MESSAGES, work)
    finally:
        os.close(descriptor)


@cache
def _encoded() -> list[bytes]:
    return [_encode(number * BATCH, batch) for number, batch in enumerate(batches(messages()))]


def _encode(base_offset: int, batch: Sequence[QueueMessage]) -> bytes:
    body = encode_body(batch)
    return body.header(base_offset, len(batch), 0, ANONYMOUS).pack() + body.body
