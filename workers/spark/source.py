"""`queue.metrics` as a Spark stream, whichever provider holds it.

A task reads raw events and decodes them where they are read, in Arrow batches, into Parquet files. What goes through
Spark is its report, one row: to send every event to the JVM and back to Python would take longer than all the rest.

Planning (`initialOffset`, `latestOffset`, `partitions`) runs in one Python process that Spark starts for a query;
`read` runs in Spark's Python workers, perhaps on other machines. Both open the provider as the options say.

An offset is `{"<partition>": <next offset>}`.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from queueapi.runtime import open_provider
from queuecore.errors import OffsetOutOfRange, UnknownTopic
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.providers.base import DataColumn, DataReader, Provider, QueueReader
from queuecore.topics import ProviderPartition
from workers.spark.decoding import CLOCK_TOLERANCE, Period
from workers.spark.options import KEPT_MS, STAGE, START, settings_from
from workers.spark.raw import RawEvents, columns_of, cut, raw_events
from workers.spark.reports import Offsets
from workers.spark.schemas import REPORT_ARROW, REPORT_SCHEMA
from workers.spark.staging import Staging

logger = logging.getLogger(__name__)

FORMAT: Final = "switchyard"
# What is decoded at once: a column costs some calls, however many events it has.
READ_RECORDS: Final = 100_000
READ_BYTES: Final = 64 * 1024 * 1024
# What is read at once of a provider that makes an object of each record: it has some seconds for it.
READ_OBJECTS: Final = 20_000
# What a task reads: enough to be worth starting one, and so little that several share a large backlog.
SMALLEST_TASK: Final = 50_000
LARGEST_TASK: Final = 500_000
# What a batch has: a backlog of any size is worked off in pieces that fit on a disk, and are done once and for all.
BATCH_EVENTS: Final = 20_000_000

# A backlog is shared by so many, until each has the most that a task may have.
_TASKS: Final = 8


class MetricsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return REPORT_SCHEMA

    def streamReader(self, schema: StructType) -> "MetricsStreamReader":  # noqa: ARG002, N802
        return MetricsStreamReader(dict(self.options))


@dataclass(frozen=True)
class MetricsRange:
    """Records [start, end) of one partition."""

    partition: int
    start: int
    end: int

    @property
    def events(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class MetricsTask(InputPartition):
    """What one task reads: parts of several partitions where little is new, of one where much is."""

    ranges: tuple[MetricsRange, ...]


class MetricsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Every method opens the provider for itself: Spark calls them in different processes."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._target: Offsets | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802
        """Where a new checkpoint begins: where the summaries end, and else at the beginning."""
        with closing(_open(self._options)) as provider:
            beginning = _offsets(provider.admin().beginning_offsets)
        known = self._known()
        return {partition: max(offset, known.get(partition, 0)) for partition, offset in beginning.items()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Called once at the start of a run: what is stored from here on is the next run's."""
        self._target = self._end()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: ARG002, N802
        target = self._end() if self._target is None else self._target
        share = BATCH_EVENTS // max(1, len(target))
        return {partition: min(end, _start(start, partition, end) + share) for partition, end in target.items()}

    def partitions(self, start: Offsets, end: Offsets) -> list[MetricsTask]:
        ranges = [MetricsRange(int(one), _start(start, one, stop), stop) for one, stop in end.items()]
        size = min(LARGEST_TASK, max(SMALLEST_TASK, sum(one.events for one in ranges) // _TASKS))
        return list(_tasks((piece for one in ranges for piece in _pieces(one, size)), size))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        task = cast(MetricsTask, partition)
        staging = Staging(Path(self._options[STAGE]), self._known(), _period(self._options))
        report = staging.stage(self.raw(task))
        yield pa.RecordBatch.from_pydict({"report": [report.to_json()]}, schema=REPORT_ARROW)

    def raw(self, task: MetricsTask) -> Iterator[RawEvents]:
        """Its events as they are stored."""
        with closing(_open(self._options)) as provider, closing(provider.reader()) as reader:
            for one in task.ranges:
                for columns in _gathered(_columns(provider, reader, one)):
                    yield raw_events(one.partition, columns)

    def _known(self) -> Offsets:
        known: Offsets = json.loads(self._options.get(START, "{}"))
        return known

    def _end(self) -> Offsets:
        with closing(_open(self._options)) as provider:
            return end_offsets(provider)


def end_offsets(provider: Provider) -> Offsets:
    """Where the topic ends now, by partition; empty before its first event."""
    return _offsets(provider.admin().end_offsets)


def _period(options: Mapping[str, str]) -> Period:
    now_ms = time.time_ns() // 1_000_000
    return Period(now_ms - int(options[KEPT_MS]), now_ms + int(CLOCK_TOLERANCE.total_seconds() * 1000))


def _open(options: Mapping[str, str]) -> Provider:
    return open_provider(settings_from(options))


def _offsets(ask: Callable[[Iterable[ProviderPartition]], Mapping[ProviderPartition, int]]) -> Offsets:
    places = [ProviderPartition(METRICS_TOPIC, number) for number in range(METRICS_PARTITIONS)]
    try:
        return {str(place.partition): offset for place, offset in ask(places).items()}
    except UnknownTopic:
        return {}


def _start(offsets: Offsets, partition: str, end: int) -> int:
    """A topic that ends before we left off has been made anew since, so it is read from its beginning."""
    start = offsets.get(partition, 0)
    return start if start <= end else 0


def _pieces(whole: MetricsRange, size: int) -> Iterator[MetricsRange]:
    for start in range(whole.start, whole.end, size):
        yield MetricsRange(whole.partition, start, min(start + size, whole.end))


def _tasks(pieces: Iterable[MetricsRange], size: int) -> Iterator[MetricsTask]:
    """As few tasks of about that size as there can be: each has a start of its own, and leaves files of its own."""
    gathered: list[MetricsRange] = []
    for piece in sorted(pieces, key=lambda one: one.events, reverse=True):
        if gathered and sum(one.events for one in gathered) + piece.events > size:
            yield MetricsTask(tuple(gathered))
            gathered = []
        gathered.append(piece)
    if gathered:
        yield MetricsTask(tuple(gathered))


def _columns(provider: Provider, reader: QueueReader, metrics: MetricsRange) -> Iterator[DataColumn]:
    place = ProviderPartition(METRICS_TOPIC, metrics.partition)
    position = metrics.start
    while position < metrics.end:
        try:
            found = _read(reader, place, position, metrics.end)
        except OffsetOutOfRange as error:
            position = _beyond_gap(provider, place, position, error)
            continue
        if not found:
            return
        for column in found:
            # A provider gives what it has together: some of it may be another task's.
            if (wanted := cut(column, position, metrics.end)).offsets:
                yield wanted
        position = found[-1].offsets[-1] + 1


def _read(reader: QueueReader, place: ProviderPartition, position: int, end: int) -> list[DataColumn]:
    """Some events from there on, without an object for each where the provider can do so; none at the end."""
    if isinstance(reader, DataReader):
        column = reader.read_data(place, position)
        return [] if column is None else [column]
    records = reader.read(place, position, min(READ_OBJECTS, end - position))
    return list(columns_of(records, READ_BYTES))


def _gathered(columns: Iterable[DataColumn]) -> Iterator[list[DataColumn]]:
    """As many together as are decoded at once: a provider may give fewer than that."""
    gathered, events, size = list[DataColumn](), 0, 0
    for column in columns:
        if gathered and (events >= READ_RECORDS or size + len(column.data) > READ_BYTES):
            yield gathered
            gathered, events, size = [], 0, 0
        gathered.append(column)
        events, size = events + len(column.offsets), size + len(column.data)
    if gathered:
        yield gathered


def _beyond_gap(provider: Provider, place: ProviderPartition, position: int, error: OffsetOutOfRange) -> int:
    beginning = provider.admin().beginning_offsets([place])[place]
    if beginning <= position:
        raise error
    logger.warning("%s; the pipeline goes on from there, %d events are not summarised", error, beginning - position)
    return beginning
