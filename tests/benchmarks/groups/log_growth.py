"""The `log` provider as its log grows: appending to the tail, reading it, and memory.

The log is filled once, before the rounds: with 10 million messages, or as many as BENCH_LOG_MESSAGES says.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from queuecore.messages import QueueMessage
from queuecore.providers.base import QueueConsumer
from queuecore.providers.log import LogProvider
from tests.benchmarks.log_provider import FIRST, opened, send_all, subscribed
from tests.benchmarks.measuring import Benchmark, Measurement, NotAvailable, Peer
from tests.benchmarks.processes import run_together
from tests.benchmarks.workload import PACK, RATE_UNIT, Tally, check_count, messages, rate

MESSAGES_VARIABLE = "BENCH_LOG_MESSAGES"
DEFAULT_MESSAGES = 10_000_000
# What costs 1.2 times as much is this many times as good.
WANTED = 1 / 1.2

_STEP = 100_000
_TAIL = 300_000
# So many tails are appended that beginning a new segment weighs the same whether the log was empty or not.
_TAILS = 4
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Memory:
    """The most memory the process had when a tenth of the messages had been sent and consumed, and when all had."""

    tenth_mib: float
    all_mib: float


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    total = int(os.environ.get(MESSAGES_VARIABLE, DEFAULT_MESSAGES))
    if total % (10 * _STEP):
        raise ValueError(f"{MESSAGES_VARIABLE} is {total}; it has to be a multiple of {10 * _STEP}")
    [filled] = run_together([partial(_filling, folder, total)])
    size = f"{total // 1_000_000} million messages"
    yield [
        _growth(f"log append behind {size}", _measure_append, folder),
        _growth(f"log tail read behind {size}", _measure_tail_read, folder),
        _memory(f"log memory after {size}", filled.result),
    ]


def _growth(name: str, measure: Callable[[Path], float], full: Path) -> Benchmark:
    empty = Peer("empty log", measure, WANTED)
    return Benchmark(Measurement(name, lambda _folder: measure(full)), (empty,), RATE_UNIT)


def _memory(name: str, memory: Memory) -> Benchmark:
    after_a_tenth = Peer("after a tenth of them", lambda _folder: _known(memory.tenth_mib), WANTED)
    subject = Measurement(name, lambda _folder: _known(memory.all_mib))
    return Benchmark(subject, (after_a_tenth,), "MiB at most", better="lower")


def _measure_append(folder: Path) -> float:
    """The log is open already; it stays as much longer as is appended here."""
    with opened(folder) as provider:
        sent = messages(_TAIL)
        send_all(provider, sent)

        def work() -> None:
            for _ in range(_TAILS):
                send_all(provider, sent)

        return rate(_TAILS * _TAIL, work)


def _measure_tail_read(folder: Path) -> float:
    """From finding the offset to the last record behind it."""
    with opened(folder) as provider:
        first = provider.admin().end_offsets([FIRST.place])[FIRST.place]
        send_all(provider, messages(_TAIL))
        return rate(_TAIL, lambda: _read_from(provider, first))


def _read_from(provider: LogProvider, offset: int) -> None:
    tally = Tally("log", _TAIL)
    with closing(provider.reader()) as reader:
        while records := reader.read(FIRST.place, offset, PACK):
            tally.take([record.data for record in records])
            offset = records[-1].offset + 1
    tally.check()


@contextmanager
def _filling(folder: Path, total: int) -> Iterator[Callable[[], Memory]]:
    sent = messages(_STEP)
    with opened(folder) as provider, subscribed(provider) as consumer:

        def work() -> Memory:
            tenth = total // 10
            _send_and_consume(provider, consumer, sent, tenth)
            tenth_mib = _peak_mib()
            _send_and_consume(provider, consumer, sent, total - tenth)
            return Memory(tenth_mib, _peak_mib())

        yield work


def _send_and_consume(provider: LogProvider, consumer: QueueConsumer, sent: Sequence[QueueMessage], count: int) -> None:
    for _ in range(0, count, _STEP):
        send_all(provider, sent)
    arrived = 0
    while records := consumer.poll(0):
        arrived += len(records)
        consumer.commit()
    check_count("log", arrived, count)


def _peak_mib() -> float:
    """0 where the system does not tell."""
    if not _STATUS.exists():
        return 0.0
    [kib] = re.findall(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    return int(kib) / 1024


def _known(mib: float) -> float:
    if not mib:
        raise NotAvailable(f"the memory of a process is read from {_STATUS}")
    return mib
