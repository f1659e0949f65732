"""What callers have sent and nobody has written yet."""

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

from queuecore.clock import Clock
from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage
from queuecore.providers.base import SendCallback, Sending, SendObserver, stopped
from queuecore.providers.log.chunks import Chunk, call_back, fail, tell_refused
from queuecore.providers.options import ProducerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo

# A message takes memory beside its data.
_OVERHEAD = 128
# In a buffer of some size, messages up to this one are counted, larger ones measured; each kind has half of it.
_SMALL = 1_024
_SOME_SIZE = 4 * 1024 * 1024
_TAKE = 8_192
# Of a message in the inbox: partition, message, callback and observer.
_ENTRIES = 4

_data_of = itemgetter(1)

_Columns = tuple[list[QueueMessage], list[SendCallback], list[SendObserver | None]]


class SendBuffer:
    """Bounded. Many threads put, one takes.

    `put` runs for every message on its caller's time, and a lock would cost more than all the rest of it. So small
    messages go to the inbox without: all that belongs to it in one step of the interpreter. Everything that
    waits, or is counted exactly, is under the lock.
    """

    def __init__(self, options: ProducerOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._answered = threading.Condition(self._lock)
        # `_ENTRIES` for each message.
        self._inbox: list[Any] = []
        is_quick = options.buffer_memory >= _SOME_SIZE and not options.linger_ms
        self._room = options.buffer_memory // 2 if is_quick else options.buffer_memory
        self._small = _SMALL if is_quick else -1
        self._limit = _ENTRIES * (self._room // (_SMALL + _OVERHEAD)) if is_quick else 0
        self._measured = self._waiting_bytes = 0
        self._taken_count = self._answered_count = self._hurry_to = 0
        self._since = 0.0
        self._taker = 0
        self._taker_sleeps = self._is_closed = self._is_over = False

    def put(
        self,
        info: TopicPartitionInfo,
        message: QueueMessage,
        callback: SendCallback,
        patience_s: float | None = None,
        observer: SendObserver | None = None,
    ) -> None:
        """ProviderUnavailable when there is no room for `max_block_ms`, or `patience_s` where that is less, or the
        buffer is closed."""
        inbox = self._inbox
        if len(inbox) < self._limit and len(message[1]) <= _SMALL:
            inbox.extend((info.place, message, callback, observer))
            if self._taker_sleeps:
                self._wake_taker()
            return
        try:
            self._put_carefully(info, message, callback, patience_s, observer)
        except QueueError:
            tell_refused(observer, info.place, (message,))
            raise

    def put_many(
        self, sends: Sequence[Sending], patience_s: float | None = None, observer: SendObserver | None = None
    ) -> None:
        """Each as `put`, where what that raises is told by the callback."""
        inbox = self._inbox
        is_small = len(inbox) + _ENTRIES * len(sends) <= self._limit and all(
            len(send[1][1]) <= _SMALL for send in sends
        )
        if not is_small:
            self._put_each(sends, patience_s, observer)
            return
        entries = ((info.place, message, callback, observer) for info, message, callback in sends)
        inbox.extend(chain.from_iterable(entries))
        if self._taker_sleeps:
            self._wake_taker()

    def take(self) -> list[Chunk]:
        """What is to be written now, oldest first; waits for it. Empty when the buffer is closed and all is taken."""
        self._taker = threading.get_ident()
        with self._lock:
            # Only now: of what was taken together, partitions are answered one after the other, not in the order sent.
            self._answered_count = self._taken_count
            self._answered.notify_all()
            # A message that comes without the lock is seen here, or its sender sees that we sleep.
            self._taker_sleeps = True
            while not self._is_ready():
                self._arrived.wait(self._lingering_s())
                self._taker_sleeps = True
            self._taker_sleeps = False
            items = self._cut_inbox(_TAKE)
            if not items:
                self._is_over = self._taker_sleeps = True
                # One that came just now did not see that it is too late: it is the last.
                items = self._cut_inbox(_TAKE)
        return list(self._chunks(items)) if items else []

    def answered(self, chunk: Chunk) -> None:
        """Every callback of the chunk has run."""
        with self._lock:
            self._measured -= chunk.measured_bytes
            self._answered.notify_all()

    def wait_until_answered(self, timeout_s: float) -> bool:
        """Whether everything that was put so far has been answered within the time."""
        with self._lock:
            count = self._hurry_to = self._taken_count + len(self._inbox) // _ENTRIES
            self._arrived.notify()
            patience_s = 0 if self._taker == threading.get_ident() else timeout_s
            return self._answered.wait_for(lambda: self._answered_count >= count, patience_s)

    def close(self) -> None:
        """Refuse what comes from now on."""
        with self._lock:
            self._is_closed = True
            self._limit = 0
            self._arrived.notify()
            self._answered.notify_all()

    def _cut_inbox(self, count: int) -> list[Any]:
        items = self._inbox[: _ENTRIES * count]
        del self._inbox[: len(items)]
        self._taken_count += len(items) // _ENTRIES
        self._waiting_bytes = 0
        return items

    def _put_each(self, sends: Sequence[Sending], patience_s: float | None, observer: SendObserver | None) -> None:
        until = self._clock.monotonic() + self._options.patience_s(patience_s)
        for info, message, callback in sends:
            try:
                self.put(info, message, callback, max(0.0, until - self._clock.monotonic()), observer)
            except QueueError as error:
                call_back(callback, error)

    def _put_carefully(
        self,
        info: TopicPartitionInfo,
        message: QueueMessage,
        callback: SendCallback,
        patience_s: float | None,
        observer: SendObserver | None,
    ) -> None:
        size = len(message[1])
        measured = size + _OVERHEAD if size > self._small else 0
        with self._lock:
            self._wait_for_room(measured, patience_s)
            self._since = self._since if self._inbox else self._clock.monotonic()
            self._inbox.extend((info.place, message, callback, observer))
            self._measured += measured
            self._waiting_bytes += measured
            self._arrived.notify()

    def _wait_for_room(self, measured: int, patience_s: float | None) -> None:
        def has_room() -> bool:
            if not measured:
                return len(self._inbox) < self._limit
            # One that is larger than all the room there is passes alone; the sender refuses it by name.
            return not self._measured or self._measured + measured <= self._room

        # In a callback there is nothing to wait for: it runs on the very thread that makes room.
        patience_s = 0 if self._taker == threading.get_ident() else self._options.patience_s(patience_s)
        fits = self._answered.wait_for(lambda: self._is_closed or has_room(), patience_s)
        if self._is_closed:
            raise stopped()
        if not fits:
            what = f"{self._measured} bytes" if measured else f"{len(self._inbox) // _ENTRIES} messages"
            raise ProviderUnavailable(
                f"{what} wait to be written and made no room for {patience_s * 1000:.0f} ms; "
                "look at the disk, or send less"
            )

    def _wake_taker(self) -> None:
        with self._lock:
            self._arrived.notify()
            self._taker_sleeps = self._is_over
            too_late = self._inbox[:] if self._is_over else []
            del self._inbox[: len(too_late)]
            self._taken_count += len(too_late) // _ENTRIES
            self._answered_count += len(too_late) // _ENTRIES
            self._answered.notify_all()
        for chunk in self._chunks(too_late):
            fail(chunk, stopped())

    def _is_ready(self) -> bool:
        if not self._inbox:
            return self._is_closed
        if self._is_closed or not self._options.linger_ms or self._taken_count < self._hurry_to:
            return True
        return self._waiting_bytes >= self._options.batch_size or self._lingering_s() == 0

    def _lingering_s(self) -> float | None:
        """How long the oldest message may wait for company still; for ever where there is none."""
        if not self._inbox:
            return None
        return max(0.0, self._since + self._options.linger_ms / 1000 - self._clock.monotonic())

    def _chunks(self, items: list[Any]) -> Iterator[Chunk]:
        places: list[ProviderPartition] = items[::_ENTRIES]
        columns = (items[number::_ENTRIES] for number in range(1, _ENTRIES))
        if len(set(places)) == 1:
            yield from self._split(places[0], *columns)
            return
        grouped: dict[ProviderPartition, _Columns] = defaultdict(lambda: ([], [], []))
        for place, message, callback, observer in zip(places, *columns, strict=True):
            messages, callbacks, observers = grouped[place]
            messages.append(message)
            callbacks.append(callback)
            observers.append(observer)
        for place, its_columns in grouped.items():
            yield from self._split(place, *its_columns)

    def _split(
        self,
        place: ProviderPartition,
        messages: list[QueueMessage],
        callbacks: list[SendCallback],
        observers: list[SendObserver | None],
    ) -> Iterator[Chunk]:
        """In parts of a request's size; a message that is larger makes a part of its own."""
        sizes = list(map(len, map(_data_of, messages)))
        ends = list(accumulate(sizes))
        start = done = 0
        while start < len(messages):
            stop = max(start + 1, bisect_right(ends, done + self._options.max_request_size))
            measured = sum(size + _OVERHEAD for size in sizes[start:stop] if size > self._small)
            yield Chunk(place, messages[start:stop], callbacks[start:stop], observers[start:stop], measured)
            start, done = stop, ends[stop - 1]
