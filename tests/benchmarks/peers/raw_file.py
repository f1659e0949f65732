"""The least anything durable can cost: the same bytes as the `log` provider, by plain system calls."""

import os
from collections.abc import Callable
from pathlib import Path

from queuecore.providers.log.batch import encode_batch
from tests.benchmarks.workload import BATCH, MESSAGES, batches, messages, rate

_CHUNK_BYTES = 1024 * 1024


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
            return rate(MESSAGES, work)
        finally:
            os.close(descriptor)

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


def _encoded() -> list[bytes]:
    return [encode_batch(number * BATCH, 0, batch) for number, batch in enumerate(batches(messages()))]
