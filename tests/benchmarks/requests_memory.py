"""What requests cost that nobody answers: memory while they wait, and what is left of them when they have timed out.

A million time out, or as many as BENCH_REQUEST_TIMEOUTS says.
"""

import gc
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from queuecore.errors import RequestTimeout
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.requests import RequestOptions, RequestTemplate, ResponseFuture
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.processes import Job, run_together
from tests.benchmarks.requests_load import Window
from tests.benchmarks.requests_ours import TOPICS, asking, open_log
from tests.benchmarks.workload import PAYLOAD_BYTES, check_count, payload

TIMEOUTS_VARIABLE: Final = "BENCH_REQUEST_TIMEOUTS"
DEFAULT_TIMEOUTS: Final = 1_000_000
PENDING: Final = 10_000
FUTURES: Final = "concurrent.futures in a dict"

_MOST_BYTES: Final = 1_024
# Objects, of which each request has several: what is left of one in a thousand would be more.
_MOST_LEFT: Final = 1_000
# Before what is counted, so that what is made once is there.
_FIRST: Final = 100
_WITHIN_S: Final = 60.0
_TIMEOUT_MS: Final = 10
# How many wait to time out at the same time.
_WAITING: Final = 5_000
# Of each partition in memory: soon full, so that what is kept there grows no more.
_CAPACITY: Final = 1_000
_POLL_MS: Final = 25


def memory_benchmarks() -> list[Benchmark]:
    return [_per_pending(), _growth(timeouts())]


def timeouts() -> int:
    """How many are to time out. ValueError for what cannot be divided by ten."""
    total = int(os.environ.get(TIMEOUTS_VARIABLE, DEFAULT_TIMEOUTS))
    if total <= 0 or total % 10:
        raise ValueError(f"{TIMEOUTS_VARIABLE} is {total}; it has to be a multiple of 10")
    return total


def _per_pending() -> Benchmark:
    """As the interpreter counts what it allocates, with the one callback that every request has whose answer somebody
    wants. What was sent is not counted: it is in the log's files by then, and would be as much for any other design."""
    return Benchmark(
        subject=Measurement(f"memory per request, {PENDING:,} pending", _measured(_pending_requests)),
        peers=(Peer(FUTURES, _measured(_pending_futures)),),
        unit="bytes",
        goal=_MOST_BYTES,
        better="lower",
    )


def _growth(total: int) -> Benchmark:
    """What the interpreter has allocated, from a tenth of the timeouts to all of them. Of the process's size at its
    highest, most is how its heap happened to be cut up."""
    return Benchmark(
        subject=Measurement(f"objects left after {total:,} timeouts, beyond a tenth", _measured(_timing_out, total)),
        peers=(Peer(FUTURES, _measured(_futures_timing_out, total)),),
        unit="objects more",
        goal=_MOST_LEFT,
        better="lower",
    )


def _measured(job: Callable[..., Any], *arguments: object) -> Callable[[Path], float]:
    """In a process of its own, with the folder as the first argument."""

    def measure(folder: Path) -> float:
        made: Job = partial(job, folder, *arguments)
        [outcome] = run_together([made])
        return float(outcome.result)

    return measure


@contextmanager
def _pending_requests(folder: Path) -> Iterator[Callable[[], float]]:
    options = RequestOptions(max_pending_requests=2 * PENDING)
    with closing(open_log(folder)) as provider:
        provider.admin().create_topics(TOPICS.specs)
        with asking(provider, options=options) as template:
            producer = provider.producer()

            def send(count: int) -> None:
                for number in range(count):
                    template.send(payload(number)).add_done_callback(_nothing)
                producer.flush(_WITHIN_S)

            yield lambda: _bytes_each(send, lambda: template.counts.pending)


@contextmanager
def _pending_futures(_folder: Path) -> Iterator[Callable[[], float]]:
    """By id, with when it has to be answered: the least that has to be known."""
    pending: dict[UUID, tuple[Future[bytes], float]] = {}

    def send(count: int) -> None:
        for _ in range(count):
            future: Future[bytes] = Future()
            future.add_done_callback(_nothing)
            pending[uuid4()] = future, time.monotonic() + _WITHIN_S

    yield lambda: _bytes_each(send, lambda: len(pending))


def _bytes_each(send: Callable[[int], None], pending: Callable[[], int]) -> float:
    tracemalloc.start()
    send(_FIRST)
    before = _allocated()
    send(PENDING)
    taken = _allocated() - before
    check_count("pending", pending(), _FIRST + PENDING)
    tracemalloc.stop()
    return taken / PENDING


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _nothing(_future: object) -> None:
    pass


@contextmanager
def _timing_out(_folder: Path, total: int) -> Iterator[Callable[[], float]]:
    """Over memory, where somebody takes all requests and answers none."""
    options = RequestOptions(max_pending_requests=2 * _WAITING)
    with closing(MemoryProvider(MemoryStorage(_CAPACITY))) as provider:
        provider.admin().create_topics(TOPICS.specs)
        with _swallowing(provider), asking(provider, options=options) as template:

            def work() -> float:
                grown = _grown(total, partial(_time_out, provider, template))
                check_count("timeouts", template.counts.timed_out, total)
                return grown

            yield work


@contextmanager
def _swallowing(provider: MemoryProvider) -> Iterator[None]:
    stopping = threading.Event()

    def swallow() -> None:
        consumer = provider.consumer(TOPICS.group)
        consumer.subscribe(TOPICS.requests)
        while not stopping.is_set():
            if consumer.poll(_POLL_MS):
                consumer.commit()
        consumer.stop()

    thread = threading.Thread(target=swallow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _time_out(provider: MemoryProvider, template: RequestTemplate, count: int) -> None:
    window = Window(_WAITING)
    others: list[BaseException | None] = []

    def ended(future: ResponseFuture) -> None:
        if not isinstance(error := future.exception(0), RequestTimeout):
            others.append(error)
        window.end()

    data = payload(0)
    while count:
        begun = window.begin(count)
        for _ in range(begun):
            template.send(data, timeout_ms=_TIMEOUT_MS).add_done_callback(ended)
        count -= begun
    window.wait_for_all()
    if others:
        raise AssertionError(f"{len(others)} ended otherwise than by their time, the first with {others[0]!r}")
    # What the partitions still hold is theirs.
    provider.admin().delete_records(provider.admin().end_offsets(info.place for info in TOPICS.requests))


@contextmanager
def _futures_timing_out(_folder: Path, total: int) -> Iterator[Callable[[], float]]:
    """The same map as above, looked through as often as ours."""
    yield lambda: _grown(total, _time_out_futures)


def _time_out_futures(count: int) -> None:
    pending: dict[UUID, tuple[Future[bytes], float, bytes]] = {}
    left = count
    while left or pending:
        for _ in range(min(left, _WAITING - len(pending))):
            future: Future[bytes] = Future()
            future.add_done_callback(_nothing)
            pending[uuid4()] = future, time.monotonic() + _TIMEOUT_MS / 1000, bytes(PAYLOAD_BYTES)
            left -= 1
        time.sleep(_TIMEOUT_MS / 1000)
        now = time.monotonic()
        for request_id in [one for one, (_, deadline, _) in pending.items() if deadline <= now]:
            pending.pop(request_id)[0].set_exception(TimeoutError("no answer"))


def _grown(total: int, time_out: Callable[[int], None]) -> float:
    tenth = total // 10
    time_out(tenth)
    before = _objects()
    time_out(total - tenth)
    return max(0.0, float(_objects() - before))


def _objects() -> int:
    gc.collect()
    return sys.getallocatedblocks()
