"""What a producer's thread does with the messages handed in: store them, let them wait for room, or refuse them."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import repeat

from queuecore.errors import QueueError
from queuecore.messages import UNKNOWN_OFFSET, RecordMetadata
from queuecore.providers.base import SendCallback
from queuecore.providers.memory.messages import NOTHING, Stored
from queuecore.providers.memory.partition import MemoryPartition
from queuecore.providers.memory.storage import MemoryStorage
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition

# Place, message, size, callback, and what is wrong with it. Plain tuples: hundreds of thousands of these are made
# every second.
Send = tuple[ProviderPartition, Stored, int, SendCallback, QueueError | None]
Answer = tuple[Send, RecordMetadata | None, QueueError | None]


class Storing:
    """For the producer's thread. Others may look at `full`."""

    def __init__(self, storage: MemoryStorage, options: ProducerOptions, look_again: Callable[[], None]) -> None:
        self._storage = storage
        self._options = options
        self._look_again = look_again
        # Cleared by another thread when nobody has the time any more.
        self.waits_for_room = storage.when_full == "block"
        # Partitions that have no room as far as is known.
        self.full: set[ProviderPartition] = set()
        # What waits for room, and until when.
        self._waiting: dict[ProviderPartition, list[Send]] = {}
        self._deadlines: dict[ProviderPartition, float] = {}

    @property
    def waits(self) -> bool:
        """Whether something waits for room."""
        return bool(self._waiting)

    def patience_s(self) -> float | None:
        """After how many seconds something will have waited for long enough; None when nothing waits."""
        if not self._deadlines:
            return None
        return max(0, min(self._deadlines.values()) - time.monotonic())

    def store(self, taken: list[Send | None]) -> list[Answer]:
        """The answers of what was stored or has to be refused; the rest waits. What waits already is tried again
        when there is a None among them, or nothing."""
        answers: list[Answer] = []
        by_place: dict[ProviderPartition, list[Send]] = defaultdict(list)
        for send in taken:
            if send is None:
                continue
            place, _, _, _, wrong = send
            if wrong is None:
                by_place[place].append(send)
            else:
                answers.append((send, None, wrong))
        if not taken or None in taken:
            by_place.update({place: by_place[place] for place in self.full})
        with self._storage.lock:
            now_ms = self._storage.clock.now_ms()
            for place, sends in by_place.items():
                answers += self._store_in(place, self._waiting.pop(place, []) + sends, now_ms)
        return answers

    def _store_in(self, place: ProviderPartition, sends: list[Send], now_ms: int) -> list[Answer]:
        try:
            partition = self._storage.partition(place)
        except QueueError as error:
            self._there_is_room(place)
            return [(send, None, error) for send in sends]
        answers: list[Answer] = []
        if partition.is_compacted:
            answers, sends = _check(partition, sends)
        room = self._storage.make_room(place, [send[1] for send in sends] or [NOTHING])
        answers += self._append(partition, sends[:room], now_ms)
        if room and room >= len(sends):
            self._there_is_room(place)
            return answers
        return answers + self._keep_waiting(place, sends[room:])

    def _append(self, partition: MemoryPartition, sends: list[Send], now_ms: int) -> Iterable[Answer]:
        base = partition.append([send[1] for send in sends], [send[2] for send in sends], now_ms)
        unknown = self._options.acks == "0"
        offsets = repeat(UNKNOWN_OFFSET, len(sends)) if unknown else range(base, base + len(sends))
        topic, number = partition.place
        rows = zip(repeat(topic), repeat(number), offsets, repeat(now_ms), strict=False)
        return zip(sends, map(tuple.__new__, repeat(RecordMetadata), rows), repeat(None), strict=False)

    def _there_is_room(self, place: ProviderPartition) -> None:
        self.full.discard(place)
        self._deadlines.pop(place, None)

    def _keep_waiting(self, place: ProviderPartition, sends: list[Send]) -> list[Answer]:
        """Let them wait for room if that is what they shall do; otherwise their answers."""
        if not self.waits_for_room:
            self._there_is_room(place)  # or not: nobody waits to see
            return self._refuse(place, sends)
        self.full.add(place)
        self._storage.tell_of_space(self._look_again)
        now = time.monotonic()
        if not sends or self._deadlines.setdefault(place, now + self._options.max_block_ms / 1000) <= now:
            self._deadlines.pop(place, None)
            return self._refuse(place, sends)
        self._waiting[place] = sends
        return []

    def _refuse(self, place: ProviderPartition, sends: list[Send]) -> list[Answer]:
        error = self._storage.full(place)
        return [(send, None, error) for send in sends]


def _check(partition: MemoryPartition, sends: list[Send]) -> tuple[list[Answer], list[Send]]:
    """The answers of what the topic cannot keep, and the others."""
    refused: list[Answer] = []
    good: list[Send] = []
    for send in sends:
        try:
            partition.check(send[1])
            good.append(send)
        except QueueError as error:
            refused.append((send, None, error))
    return refused, good
