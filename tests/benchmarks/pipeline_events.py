"""Events as an installation with a thousand partitions reports them, in a log of their own.

Intervals are those that an installation has unless told otherwise. One sampler takes the offsets of every partition
each 5 s (`sample_interval_s`). What consumers and producers did is told each 10 s (`metrics_interval_s`), by one of
twelve hosts for each partition; twenty other instances tell then of their requests to two topics each. A partition that
is busy all the time so has 24 events a minute, half of them samples of offsets. In a backlog of hours a partition is
busy for one minute of six, and has 14 on average.

Of a hundred partitions two fall behind (WARN), one has a group that is gone (STOP), one a group that fails at every
message (STALL), and two have a group that goes back every ten minutes, and takes five until it is where it was (REWIND)
and all ten to catch up; every hour it is others. One partition of each queue, two of a hundred, has two dead letters in
each report.

What a host tells goes to one partition of the topic, what the sampler tells to all in turn. What one of them tells a
partition at one moment is a batch in the log, as it is when the log's sender writes it.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from queueapi.choices import LagStatus
from queuecore.hashing import partition_of
from queuecore.messages import QueueMessage
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import encode_body
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition
from tests.benchmarks import pipeline_samples as samples
from tests.benchmarks.pipeline_samples import HALF, MESSAGES, PARTITIONS
from tests.benchmarks.processes import run_together

QUEUES: Final = 20
# In how many minutes a partition is busy for one.
ALWAYS: Final = 1
SELDOM: Final = 6

_SAMPLED_MS: Final = 5_000
_TURNS_A_MINUTE: Final = 60_000 // _SAMPLED_MS
_TURNS_AN_HOUR: Final = 60 * _TURNS_A_MINUTE
_TURNS_BETWEEN_REWINDS: Final = 10 * _TURNS_A_MINUTE
# As far as a group comes in five minutes that handles twice what its partition gets.
_REWIND: Final = 5 * _TURNS_A_MINUTE * MESSAGES

_SAMPLER: Final = "tasks-1"
_HOSTS: Final = 12
_ASKING: Final = 20
_REQUEST_TOPICS: Final = ("tb_transport.api.requests", "tb_core.registry.requests")

_TROUBLE: Final = {
    10: LagStatus.WARN,
    20: LagStatus.REWIND,
    35: LagStatus.WARN,
    50: LagStatus.STOP,
    70: LagStatus.STALL,
    80: LagStatus.REWIND,
}
# By which trouble goes on each hour.
_STEP: Final = 37

# What one of them tells a partition of the topic at one moment.
Report = list[bytes]


class Reporters:
    """All that report to one partition of the topic, moment by moment."""

    def __init__(self, mine: int, start_ms: int, every: int, queues: int = QUEUES) -> None:
        """Partitions are busy for one minute of so many."""
        self.place = ProviderPartition(METRICS_TOPIC, mine)
        self._at_ms, self._every, self._turn = start_ms, every, 0
        numbers = range(queues * PARTITIONS)
        self._hosts = {
            host: numbers[host::_HOSTS]
            for host in range(_HOSTS)
            if partition_of(_host(host), METRICS_PARTITIONS) == mine
        }
        self._asking = [one for one in range(_ASKING) if partition_of(_asking(one), METRICS_PARTITIONS) == mine]
        self._sampled = numbers[mine::METRICS_PARTITIONS]
        # Where the log of each ends, and where its group is.
        self._ends = {number: 2 * _REWIND + number for number in self._sampled}
        self._committed = dict(self._ends)

    def minutes(self, count: int) -> Iterator[Report]:
        for _ in range(count * _TURNS_A_MINUTE):
            yield from self._reports()
            self._at_ms, self._turn = self._at_ms + _SAMPLED_MS, self._turn + 1

    def _reports(self) -> Iterator[Report]:
        yield list(self._offsets())
        # One half of them reports now, the other in five seconds.
        for host, numbers in self._hosts.items():
            if (host + self._turn) % 2 == 0:
                yield list(self._done(_host(host), numbers))
        for instance in self._asking:
            if (instance + self._turn) % 2 == 0:
                head = samples.head(_asking(instance), self._at_ms)
                yield [head + samples.requests(instance, topic) for topic in _REQUEST_TOPICS]

    def _offsets(self) -> Iterator[bytes]:
        head = samples.head(_SAMPLER, self._at_ms)
        for number in self._sampled:
            self._move(number)
            yield head + samples.offsets(number, self._ends[number], self._committed[number])

    def _move(self, number: int) -> None:
        status = self._status(number)
        if not self._is_busy(number, status):
            self._committed[number] = self._ends[number]
            return
        self._ends[number] = end = self._ends[number] + HALF
        committed, nearly = self._committed[number], end - number % HALF
        match status:
            case LagStatus.STOP | LagStatus.STALL:
                return
            case LagStatus.WARN:
                committed += HALF // 2
            case LagStatus.REWIND if (self._turn + number) % _TURNS_BETWEEN_REWINDS == 0:
                committed -= _REWIND
            case LagStatus.REWIND:
                committed = min(committed + MESSAGES, nearly)
            case _:
                committed = nearly
        self._committed[number] = committed

    def _done(self, service_id: str, numbers: Sequence[int]) -> Iterator[bytes]:
        head = samples.head(service_id, self._at_ms)
        for number in numbers:
            status = self._status(number)
            if not self._is_busy(number, status):
                continue
            yield head + samples.sent(number)
            if status is not LagStatus.STOP:
                yield head + samples.consumed(number, status, self._turn // 2 % samples.VARIANTS)
                if samples.has_letters(number, status):
                    yield head + samples.sent_letters(number)

    def _status(self, number: int) -> LagStatus:
        return _TROUBLE.get((number + _STEP * (self._turn // _TURNS_AN_HOUR)) % 100, LagStatus.OK)

    def _is_busy(self, number: int, status: LagStatus) -> bool:
        """Trouble is of those that have something to do."""
        return status is not LagStatus.OK or (number + self._turn // _TURNS_A_MINUTE) % self._every == 0


def all_reporters(start_ms: int, every: int, queues: int = QUEUES) -> list[Reporters]:
    return [Reporters(number, start_ms, every, queues) for number in range(METRICS_PARTITIONS)]


def create_log(root: Path) -> None:
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([TopicSpec(METRICS_TOPIC, METRICS_PARTITIONS)])


def fill_log(root: Path, reporters: Iterable[Reporters], minutes: int) -> int:
    """Add what these report in so many minutes. How many events that is."""
    return sum(_fill(root, one, minutes) for one in reporters)


def fill_large_log(root: Path, events: int, end_ms: int) -> int:
    """A backlog of about so many events, of the minutes until then, written by two processes. How many it has."""
    create_log(root)
    minutes = math.ceil(events / _events_a_minute())
    start_ms = end_ms - minutes * 60_000
    halves = [range(number, METRICS_PARTITIONS, 2) for number in range(2)]
    filled = run_together([partial(_filling, root, half, start_ms, minutes) for half in halves])
    return sum(outcome.result for outcome in filled)


@contextmanager
def _filling(root: Path, mine: range, start_ms: int, minutes: int) -> Iterator[Callable[[], int]]:
    yield partial(fill_log, root, [Reporters(number, start_ms, SELDOM) for number in mine], minutes)


def _events_a_minute() -> float:
    """In a backlog."""
    reports = (report for one in all_reporters(0, SELDOM) for report in one.minutes(SELDOM))
    return sum(map(len, reports)) / SELDOM


def _fill(root: Path, reporters: Reporters, minutes: int) -> int:
    count = 0
    with closing(PartitionWriter(root, reporters.place)) as writer:
        for report in reporters.minutes(minutes):
            messages = [QueueMessage(None, data) for data in report]
            if messages:
                writer.append(encode_body(messages), time.time_ns() // 1_000_000, sync=False)
            count += len(messages)
    return count


def _host(number: int) -> str:
    return f"consumer-{number}"


def _asking(number: int) -> str:
    return f"tb-transport-{number}"
