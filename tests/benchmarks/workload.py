"""What is sent in every benchmark of moving messages, how it is timed, and how its arrival is checked."""

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from uuid import UUID

from queuecore.collector import collect_seldom
from queuecore.messages import QueueMessage

# Half a second at the rates aimed for. Of a slower peer's rate fewer messages tell as much: its module says how many.
MESSAGES = 500_000
PAYLOAD_BYTES = 100
ENTITIES = 1_000

# Peers get the batches our producer makes at most of such messages, and the packs our consumer polls at most.
BATCH = 4_600
PACK = 8_192

RATE_UNIT = "messages/s"

_NUMBER_BYTES = 8


@cache
def messages(count: int = MESSAGES) -> Sequence[QueueMessage]:
    """Payloads that begin with their number, keyed by an entity: made before the clock starts, and only once."""
    entities = [UUID(int=number) for number in range(ENTITIES)]
    return [QueueMessage(entities[number % ENTITIES], payload(number)) for number in range(count)]


def payload(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES).ljust(PAYLOAD_BYTES, b".")


def number_in(data: bytes) -> int:
    """The number that a payload was made of."""
    return int.from_bytes(data[:_NUMBER_BYTES])


def key_bytes(message: QueueMessage) -> bytes:
    """The key as peers store it; every message of this workload has a UUID for key."""
    if not isinstance(message.key, UUID):
        raise TypeError(f"{message.key!r} is not a key of this workload")
    return message.key.bytes


def batches(sent: Sequence[QueueMessage]) -> Iterator[Sequence[QueueMessage]]:
    for start in range(0, len(sent), BATCH):
        yield sent[start : start + BATCH]


def rate(count: int, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Messages per second of `work`, which handles `count` of them; by another clock, of what that measures."""
    settle()
    started = clock()
    work()
    return count / (clock() - started)


def settle() -> None:
    """Deal with what is left of earlier measurements, garbage and unwritten pages, before a clock starts. What is
    alive then, the workload above all, is no concern of the garbage collector's afterwards."""
    gc.unfreeze()
    # As our processes do it, for all parties alike.
    collect_seldom()
    os.sync()


class Tally:
    """Takes the data of pack after pack, and finds out whether every message arrives once and in order. It touches
    each of them, as a handler would; that is part of what is timed."""

    def __init__(self, what: str, expected: int, *, first: int = 0) -> None:
        self._what = what
        self._expected = expected
        self._first = first
        self._bytes = 0
        self.count = 0

    def take(self, data: Sequence[bytes]) -> None:
        self.count += len(data)
        self._bytes += sum(map(len, data))
        wanted = self._first + self.count - 1
        if (number := number_in(data[-1])) != wanted:
            raise AssertionError(f"{self._what}: message {number} arrived in the place of {wanted}")

    @property
    def is_complete(self) -> bool:
        return self.count >= self._expected

    def check(self) -> None:
        check_count(self._what, self.count, self._expected)
        check_count(f"{self._what}, bytes", self._bytes, self._expected * PAYLOAD_BYTES)


def rate_behind_first(tally: Tally, messages: int, take_pack: Callable[[], object]) -> float:
    """Messages per second from now on, when the first pack is through, until all have been taken."""
    settle()
    first, started = tally.count, time.perf_counter()
    while not tally.is_complete:
        take_pack()
    took_s = time.perf_counter() - started
    tally.check()
    return (messages - first) / took_s


def check_count(what: str, count: int, expected: int) -> None:
    """A rate counts only when every message arrived."""
    if count != expected:
        raise AssertionError(f"{what}: {count} of {expected} arrived")
