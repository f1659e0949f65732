"""The requests that wait for their answers."""

import os
import sys
import threading
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from queuecore.clock import Clock
from queuecore.requests.counts import LAG_BOUNDS_MS
from queuecore.requests.future import ResponseFuture

NEVER: Final = float("inf")
_LIFE_BYTES: Final = 8


class Ages(NamedTuple):
    """How long the oldest waits, and how many wait up to each of `LAG_BOUNDS_MS`, and longer."""

    oldest_ms: int
    buckets: tuple[int, ...]


class PendingRequests:
    """By id, with their deadlines. Safe from any thread.

    An id is 16 bytes: eight that are random for each life of an instance, and a number. So it is never another's, and
    an answer that nobody waits for tells whether this life of the instance asked.

    Nothing but this map says that a request is pending, and taking it out is one step of the interpreter: of answer,
    timeout, failure and cancellation, whoever is first has it, and the others find nothing.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._life = os.urandom(_LIFE_BYTES)
        # How many there ever were, had no room, and ended without an answer or a timeout.
        self.sent = self.refused = self.cancelled = self.not_stored = 0
        self._futures: dict[bytes, ResponseFuture] = {}
        # Guards adding, and what follows. Taking out needs no lock.
        self._lock = threading.Lock()
        self._sooner = threading.Condition(self._lock)
        # No deadline is before that. Answered requests leave it as it is: it is made anew when it is reached.
        self._earliest = NEVER
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._futures)

    def add(self, now: float, deadline: float) -> ResponseFuture | None:
        """A request that waits from now on; None where there is no room for it."""
        with self._lock:
            if len(self._futures) >= self._limit or self._is_closed:
                self.refused += 1
                return None
            self.sent += 1
            request_id = self._life + self.sent.to_bytes(8, "big")
            future = self._futures[request_id] = ResponseFuture(self, request_id, now, deadline)
            if deadline < self._earliest:
                self._earliest = deadline
                self._sooner.notify()
        return future

    def add_many(self, count: int, now: float, deadline: float) -> list[ResponseFuture]:
        """Requests that wait from now on: so many, or as many as there is room for."""
        with self._lock:
            room = 0 if self._is_closed else min(count, max(0, self._limit - len(self._futures)))
            self.refused += count - room
            numbers = range(self.sent + 1, self.sent + room + 1)
            self.sent += room
            life = self._life
            ids = [life + one.to_bytes(8, "big") for one in numbers]
            futures = [ResponseFuture(self, one, now, deadline) for one in ids]
            self._futures.update(zip(ids, futures, strict=True))
            if futures and deadline < self._earliest:
                self._earliest = deadline
                self._sooner.notify()
        return futures

    def take(self, request_id: bytes) -> ResponseFuture | None:
        """The request, for who ends it; None where it has ended, or was never made here."""
        return self._futures.pop(request_id, None)

    def take_each(self, request_ids: Iterable[bytes]) -> list[ResponseFuture | None]:
        """As `take` for each of these."""
        pop = self._futures.pop
        return [pop(one, None) for one in request_ids]

    def take_cancelled(self, request_id: bytes) -> ResponseFuture | None:
        """As `take`, for one that nobody waits for any more."""
        future = self.take(request_id)
        with self._lock:
            self.cancelled += future is not None
        return future

    def take_not_stored(self, request_id: bytes) -> ResponseFuture | None:
        """As `take`, for one that the provider did not take."""
        future = self.take(request_id)
        with self._lock:
            self.not_stored += future is not None
        return future

    def is_own(self, request_id: bytes) -> bool:
        """Whether the id is of this life, pending or not."""
        return request_id.startswith(self._life) and len(request_id) == _LIFE_BYTES + 8

    def take_expired(self, now: float) -> list[ResponseFuture]:
        """Those whose time is up."""
        with self._lock:
            if now < self._earliest:
                return []
            waiting = list(self._futures.values())
            self._earliest = min((one.deadline for one in waiting if one.deadline > now), default=NEVER)
        return [one for one in waiting if one.deadline <= now and self.take(one.request_id) is not None]

    def wait_until_due(self, clock: Clock, least_s: float) -> bool:
        """Until one's time is up, but for so long at least: those that are up soon after each other are told together.
        False once it is closed."""
        with self._lock:
            self._sooner.wait_for(lambda: self._is_closed, least_s)
            while not self._is_closed and (remaining_s := self._earliest - clock.monotonic()) > 0:
                self._sooner.wait(None if remaining_s == NEVER else remaining_s)
            return not self._is_closed

    def close(self) -> list[ResponseFuture]:
        """Take no more; those that wait, for who ends them."""
        with self._lock:
            self._is_closed = True
            self._sooner.notify_all()
            waiting = list(self._futures.values())
        return [one for one in waiting if self.take_cancelled(one.request_id) is not None]

    def ages(self, now: float) -> Ages:
        """How long they wait."""
        # In the order in which they were added; taken as a whole, as others take some out meanwhile.
        waiting = list(self._futures.values())
        # One that was sent while this began has not waited for less than nothing.
        oldest_ms = max(0, round((now - waiting[0].sent_at) * 1000)) if waiting else 0
        longer = (bisect_left(waiting, now - bound / 1000, key=_SENT_AT) for bound in LAG_BOUNDS_MS)
        return Ages(oldest_ms, tuple(before - after for before, after in pairwise((len(waiting), *longer, 0))))

    @property
    def memory_bytes(self) -> int:
        """What the map and its requests take, without their payloads, which are the producer's."""
        return sys.getsizeof(self._futures) + len(self._futures) * _ENTRY_BYTES


_SENT_AT: Final = attrgetter("sent_at")


def _entry_bytes() -> int:
    """A request's own objects: its id, two times and itself, and what waits for it, most often one lock."""
    future = ResponseFuture(PendingRequests(1), bytes(16), 0.0, 0.0)
    waiting = sys.getsizeof(threading.Lock())
    return sys.getsizeof(future) + sys.getsizeof(bytes(16)) + 2 * sys.getsizeof(0.0) + waiting


_ENTRY_BYTES: Final = _entry_bytes()
