"""Requests from one thread, as many at once as may be or on a schedule; every answer is checked to be its own."""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from tests.benchmarks.workload import messages

Told = Callable[[Any], None]
# Sends the payload, and has the callback called once, with whatever the answer can be read from.
Ask = Callable[[bytes, Told], object]
# The same for many at once.
AskMany = Callable[[Sequence[bytes], Sequence[Told]], object]

# How many requests are outstanding where throughput is measured, by every party but Celery.
OUTSTANDING_VARIABLE: Final = "BENCH_REQUESTS_OUTSTANDING"
OUTSTANDING: Final = int(os.environ.get(OUTSTANDING_VARIABLE, 4_000))
RATE_UNIT: Final = "req/s"

_NOBODY_WAITS: Final = sys.maxsize
_PATIENCE_S: Final = 120.0
# What is due within this time is sent together.
_TICK_S: Final = 0.001


class Window:
    """How many are outstanding. For one thread that begins them, many at a time; they end on any. Who begins is woken
    when a quarter of all may begin, not for each: the harness must not be what is measured."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._refill = max(1, size // 4)
        self._begun = 0
        self.ended = 0
        # How many have to have ended until somebody who waits is woken.
        self._wanted = _NOBODY_WAITS
        self._woken = threading.Event()
        # Who asks for the end of a request that has ended already is told so at once, on its own thread.
        self._ending = threading.Lock()

    def begin(self, most: int) -> int:
        """How many begin now, at least one and no more than `most`. Waits while as many are outstanding as may be.
        TimeoutError when none ends for long."""
        if self._begun - self.ended >= self._size:
            self._wait_for(self._begun - self._size + self._refill)
        count = min(most, self._size - (self._begun - self.ended))
        self._begun += count
        return count

    def end(self) -> None:
        with self._ending:
            self.ended += 1
            if self.ended >= self._wanted:
                self._woken.set()

    def wait_for_all(self) -> None:
        """TimeoutError as `begin`."""
        self._wait_for(self._begun)

    def _wait_for(self, wanted: int) -> None:
        self._woken.clear()
        self._wanted = wanted
        # Who ends counts first and looks then; here it is the other way round, so one of the two sees the other.
        if self.ended < wanted and not self._woken.wait(_PATIENCE_S):
            raise TimeoutError(f"{self.ended:,} of {self._begun:,} requests have ended, and no more within a while")
        self._wanted = _NOBODY_WAITS


def one_by_one(ask: Ask) -> AskMany:
    def ask_many(payloads: Sequence[bytes], told: Sequence[Told]) -> None:
        for payload, one in zip(payloads, told, strict=True):
            ask(payload, one)

    return ask_many


class Load:
    """Requests of one party. `read` gives the data of what its callbacks are called with, or raises why there is none.

    For one thread.
    """

    def __init__(self, ask_many: AskMany, read: Callable[[Any], bytes]) -> None:
        self._ask_many = ask_many
        self._read = read
        self._problem: Exception | None = None

    def run(self, count: int, outstanding: int = OUTSTANDING) -> float:
        """How many round trips a second, with so many outstanding, from the first request to the last answer."""
        payloads, window = _payloads(count), Window(outstanding)
        ended = partial(self._ended, payloads, window)
        sent = 0
        started = time.perf_counter()
        while sent < count:
            until = sent + window.begin(count - sent)
            self._ask_many(payloads[sent:until], [partial(ended, number) for number in range(sent, until)])
            sent = until
        window.wait_for_all()
        took_s = time.perf_counter() - started
        self._check()
        return count / took_s

    def latencies_ms(self, count: int, per_s: float) -> list[float]:
        """How long each round trip took, counted from when it was due: who comes late makes them longer. Requests are
        sent when they are due, whatever became of the others."""
        payloads, window = _payloads(count), Window(count)
        ended_at = [0.0] * count
        ended = partial(self._ended_at, payloads, window, ended_at)
        schedule = Schedule(per_s, count)
        window.begin(count)
        started = time.perf_counter()
        for due in schedule.batches(started):
            self._ask_many(payloads[due.start : due.stop], [partial(ended, number) for number in due])
        window.wait_for_all()
        self._check()
        return [(ended_at[number] - started - schedule.due_s(number)) * 1000 for number in range(count)]

    def _ended(self, payloads: Sequence[bytes], window: Window, number: int, answer: Any) -> None:
        try:
            if self._read(answer) != payloads[number]:
                raise AssertionError(f"request {number} got the answer of another")
        except Exception as error:
            self._problem = error
        window.end()

    def _ended_at(
        self, payloads: Sequence[bytes], window: Window, ended_at: list[float], number: int, answer: Any
    ) -> None:
        ended_at[number] = time.perf_counter()
        self._ended(payloads, window, number, answer)

    def _check(self) -> None:
        if self._problem is not None:
            raise self._problem


class Schedule:
    """So many requests, evenly spread in time. Times are seconds, since the first is due."""

    def __init__(self, per_s: float, count: int) -> None:
        self._per_s = per_s
        self._count = count

    def due_s(self, number: int) -> float:
        return number / self._per_s

    def due_at(self, elapsed_s: float) -> int:
        """How many are due by then."""
        return min(self._count, math.floor(elapsed_s * self._per_s) + 1)

    def pause_s(self, sent: int, elapsed_s: float) -> float:
        """How long nothing is due behind so many; a tick at least, as shorter sleeps cost more than they bring."""
        return max(_TICK_S, self.due_s(sent) - elapsed_s)

    def batches(self, started: float) -> Iterator[range]:
        """The numbers of those that are due, as time goes by; sleeps until there are some."""
        sent = 0
        while sent < self._count:
            due = self.due_at(time.perf_counter() - started)
            if due > sent:
                yield range(sent, due)
                sent = due
            if sent < self._count:
                time.sleep(self.pause_s(sent, time.perf_counter() - started))


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of the values that so many percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def _payloads(count: int) -> list[bytes]:
    return [message.data for message in messages(count)]
