"""`queue.metrics` as a Spark stream.

Planning (`initialOffset`, `latestOffset`, `partitions`) runs in one Python process that Spark starts for a query;
`read` runs in Spark's Python workers, perhaps on other machines. Both open the provider as the options say.

An offset is `{"<partition>": <next offset>}`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import cast

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from queueapi.runtime import open_provider
from queuecore.errors import OffsetOutOfRange, UnknownTopic
from queuecore.messages import Record
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.providers.base import Provider
from queuecore.topics import ProviderPartition
from workers.spark.decoding import SAMPLE_SCHEMA, SampleRow, Unusable, decode_sample
from workers.spark.options import settings_from

logger = logging.getLogger(__name__)

FORMAT = "switchyard"
READ_RECORDS = 2_000

Offsets = dict[str, int]


class MetricsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return SAMPLE_SCHEMA

    def streamReader(self, schema: StructType) -> "MetricsStreamReader":  # noqa: ARG002, N802
        return MetricsStreamReader(dict(self.options))


@dataclass(frozen=True)
class MetricsRange(InputPartition):
    """Records [start, end) of one partition: what one task reads."""

    partition: int
    start: int
    end: int


class MetricsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Every method opens the provider for itself: Spark calls them in different processes."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._target: Offsets | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802
        with closing(_open(self._options)) as provider:
            return _offsets(provider.admin().beginning_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Called once at the start of a run: what is stored from here on is the next run's."""
        self._target = self._end()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: ARG002, N802
        return self._end() if self._target is None else self._target

    def partitions(self, start: Offsets, end: Offsets) -> list[MetricsRange]:
        ranges = (_range(int(partition), start.get(partition, 0), stop) for partition, stop in end.items())
        return [metrics for metrics in ranges if metrics.start < metrics.end]

    def read(self, partition: InputPartition) -> Iterator[SampleRow]:
        metrics = cast(MetricsRange, partition)
        with closing(_open(self._options)) as provider:
            yield from _samples(_records(provider, metrics), metrics)

    def _end(self) -> Offsets:
        with closing(_open(self._options)) as provider:
            return _offsets(provider.admin().end_offsets)


def _open(options: Mapping[str, str]) -> Provider:
    return open_provider(settings_from(options))


def _offsets(ask: Callable[[Iterable[ProviderPartition]], Mapping[ProviderPartition, int]]) -> Offsets:
    """The answer for every partition; empty before the topic's first event."""
    places = [ProviderPartition(METRICS_TOPIC, number) for number in range(METRICS_PARTITIONS)]
    try:
        return {str(place.partition): offset for place, offset in ask(places).items()}
    except UnknownTopic:
        return {}


def _range(partition: int, start: int, end: int) -> MetricsRange:
    """A topic that ends before we left off has been made anew since, so it is read from its beginning."""
    return MetricsRange(partition, start if start <= end else 0, end)


def _records(provider: Provider, metrics: MetricsRange) -> Iterator[Record]:
    place = ProviderPartition(METRICS_TOPIC, metrics.partition)
    position = metrics.start
    with closing(provider.reader()) as reader:
        while position < metrics.end:
            try:
                records = reader.read(place, position, READ_RECORDS)
            except OffsetOutOfRange as error:
                position = _beyond_gap(provider, place, position, error)
                continue
            if not records:
                return
            yield from (record for record in records if record.offset < metrics.end)
            position = records[-1].offset + 1


def _beyond_gap(provider: Provider, place: ProviderPartition, position: int, error: OffsetOutOfRange) -> int:
    beginning = provider.admin().beginning_offsets([place])[place]
    if beginning <= position:
        raise error
    logger.warning("%s; the pipeline goes on from there, %d events are not summarised", error, beginning - position)
    return beginning


def _samples(records: Iterable[Record], metrics: MetricsRange) -> Iterator[SampleRow]:
    skipped = 0
    reason = ""
    for record in records:
        try:
            row = decode_sample(record.data)
        except Unusable as error:
            skipped += 1
            reason = f"offset {record.offset}: {error}"
            continue
        if row is not None:
            yield row
    if skipped:
        logger.warning(
            "skipped %d unusable events of %s[%d]; the last at %s", skipped, METRICS_TOPIC, metrics.partition, reason
        )
