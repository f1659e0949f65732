"""Work in processes of its own that begins everywhere at once."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tests.benchmarks.workload import settle

# Prepares in the process it runs in, and gives the work that is to be timed. Has to be picklable.
Job = Callable[[], AbstractContextManager[Callable[[], Any]]]

_STARTUP_S = 600
_WORK_S = 3_600
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Outcome:
    """When a job's work began and ended, on the clock that all processes share, and what it gave."""

    started: float
    ended: float
    result: Any


def run_together(jobs: Sequence[Job]) -> list[Outcome]:
    """Run each job in a process of its own; the work begins when all are prepared. RuntimeError when one dies."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(job)) for job in jobs]
        for worker in workers:
            _receive(worker, _STARTUP_S)
        os.sync()
        for worker in workers:
            worker.send("go")
        return [_receive(worker, _WORK_S) for worker in workers]


@contextmanager
def beside(job: Job) -> Iterator[None]:
    """Run what the job prepares in a process of its own, as long as the block lasts: its work is whatever is left to
    do then. RuntimeError when it dies."""
    with _worker(job) as worker:
        _receive(worker, _STARTUP_S)
        yield
        worker.send("go")
        _receive(worker, _WORK_S)


def took_s(outcomes: Sequence[Outcome]) -> float:
    """From when the first began to when the last was done."""
    return max(outcome.ended for outcome in outcomes) - min(outcome.started for outcome in outcomes)


@contextmanager
def _worker(job: Job) -> Iterator[Connection]:
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_work, args=(job, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    except BaseException:
        process.terminate()
        raise
    finally:
        ours.close()
        process.join()


def _work(job: Job, parent: Connection) -> None:
    with job() as work:
        settle()
        parent.send("ready")
        parent.recv()
        started = time.perf_counter()
        result = work()
        parent.send(Outcome(started, time.perf_counter(), result))


def _receive(worker: Connection, timeout_s: float) -> Any:
    if not worker.poll(timeout_s):
        raise RuntimeError(f"a process of the benchmark did not answer within {timeout_s} s")
    try:
        return worker.recv()
    except EOFError:
        raise RuntimeError("a process of the benchmark died; what it said is above") from None
