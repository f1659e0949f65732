"""What is sent in every benchmark of moving messages, and how it is timed."""

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from queuecore.messages import QueueMessage

MESSAGES = 100_000
PAYLOAD_BYTES = 100
ENTITIES = 1_000

# Peers get the batches our producer makes at most, and the packs our consumer polls at most.
BATCH = 2_000
PACK = 500

RATE_UNIT = "messages/s"


def messages(count: int = MESSAGES) -> list[QueueMessage]:
    """Distinct payloads, keyed by an entity: made before the clock starts."""
    entities = [UUID(int=number) for number in range(ENTITIES)]
    return [
        QueueMessage(entities[number % ENTITIES], number.to_bytes(8, "big").ljust(PAYLOAD_BYTES, b"."))
        for number in range(count)
    ]


def key_bytes(message: QueueMessage) -> bytes:
    """The key as peers store it; every message of this workload has a UUID for key."""
    if not isinstance(message.key, UUID):
        raise TypeError(f"{message.key!r} is not a key of this workload")
    return message.key.bytes


def batches(sent: Sequence[QueueMessage]) -> Iterator[Sequence[QueueMessage]]:
    for start in range(0, len(sent), BATCH):
        yield sent[start : start + BATCH]


def rate(count: int, work: Callable[[], None]) -> float:
    """Messages per second of `work`, which handles `count` of them.

    What earlier measurements left behind, garbage and unwritten pages, is dealt with before the clock starts.
    """
    gc.collect()
    os.sync()
    started = time.perf_counter()
    work()
    return count / (time.perf_counter() - started)


def check_count(what: str, count: int, expected: int = MESSAGES) -> None:
    """A rate counts only when every message arrived."""
    if count != expected:
        raise AssertionError(f"{what}: {count} of {expected} messages arrived")
