"""The stream over a real log, as Spark calls it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from queueapi.config import Config
from queuecore.messages import QueueMessage
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import encode_body
from queuecore.providers.log.files import partition_dir, segment_path
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition
from tests.unit.spark.test_decoding import event, request_event
from workers.spark.options import source_options
from workers.spark.source import MetricsRange, MetricsStreamReader

ALL = ReadAllAvailable()


class Log:
    """The metrics topic in a folder; each batch of events is a segment of its own."""

    def __init__(self, data_dir: Path) -> None:
        self.root = data_dir / "log"
        self.config = Config(data_dir=data_dir)

    def create(self) -> None:
        with closing(LogProvider(self.root)) as provider:
            provider.admin().create_topics([TopicSpec(METRICS_TOPIC, METRICS_PARTITIONS)])

    def append(self, partition: int, *events: bytes) -> None:
        messages = [QueueMessage(None, data) for data in events]
        with closing(
            PartitionWriter(self.root, ProviderPartition(METRICS_TOPIC, partition), segment_bytes=1)
        ) as writer:
            writer.append(encode_body(messages), 0, sync=False)

    def remove_segment(self, partition: int, base: int) -> None:
        segment_path(partition_dir(self.root, ProviderPartition(METRICS_TOPIC, partition)), base).unlink()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


@pytest.fixture
def reader(log: Log) -> MetricsStreamReader:
    return MetricsStreamReader(source_options(log.config))


def ends(reader: MetricsStreamReader, metrics: MetricsRange) -> Iterator[int]:
    """The end offset in each row: which events these are."""
    return (row[7] for row in reader.read(metrics))


def test_before_the_first_event_there_is_nothing(reader: MetricsStreamReader) -> None:
    assert reader.initialOffset() == {}
    assert reader.latestOffset({}, ALL) == {}
    assert reader.partitions({}, {}) == []


def test_a_run_takes_what_was_there_when_it_began(log: Log, reader: MetricsStreamReader) -> None:
    log.create()
    log.append(1, event(end_offset=1), event(end_offset=2))
    reader.prepareForTriggerAvailableNow()
    log.append(1, event(end_offset=3))
    start, end = reader.initialOffset(), reader.latestOffset({}, ALL)
    assert (start, end) == ({"0": 0, "1": 0, "2": 0, "3": 0}, {"0": 0, "1": 2, "2": 0, "3": 0})
    [metrics] = reader.partitions(start, end)
    assert metrics == MetricsRange(1, 0, 2)
    assert list(ends(reader, metrics)) == [1, 2]


def test_reading_goes_on_where_it_left_off(log: Log, reader: MetricsStreamReader) -> None:
    log.create()
    log.append(0, *(event(end_offset=number) for number in range(5)))
    [metrics] = reader.partitions({"0": 3}, {"0": 5})
    assert list(ends(reader, metrics)) == [3, 4]


def test_a_partition_that_is_new_is_read_from_its_beginning(reader: MetricsStreamReader) -> None:
    assert reader.partitions({"0": 5}, {"0": 5, "4": 2}) == [MetricsRange(4, 0, 2)]


def test_a_topic_made_anew_is_read_from_its_beginning(reader: MetricsStreamReader) -> None:
    assert reader.partitions({"0": 50}, {"0": 2}) == [MetricsRange(0, 0, 2)]


def test_events_that_retention_removed_are_passed_over(
    log: Log, reader: MetricsStreamReader, caplog: pytest.LogCaptureFixture
) -> None:
    log.create()
    for number in range(3):
        log.append(2, event(end_offset=number))
    log.remove_segment(2, 0)
    assert list(ends(reader, MetricsRange(2, 0, 3))) == [1, 2]
    [record] = caplog.records
    assert "begins at offset 1" in record.getMessage()
    assert "1 events are not summarised" in record.getMessage()


def test_everything_removed_is_nothing_to_read(log: Log, reader: MetricsStreamReader) -> None:
    log.create()
    for number in range(3):
        log.append(2, event(end_offset=number))
    for base in range(2):
        log.remove_segment(2, base)
    assert list(ends(reader, MetricsRange(2, 0, 2))) == []


def test_unusable_events_are_counted_and_skipped(
    log: Log, reader: MetricsStreamReader, caplog: pytest.LogCaptureFixture
) -> None:
    log.create()
    log.append(0, event(end_offset=1), b"\xff", event(queue_id="?"), event(end_offset=2))
    assert list(ends(reader, MetricsRange(0, 0, 4))) == [1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        "skipped 2 unusable events of queue.metrics[0]; the last at offset 2: '?' is not a queue's id"
    ]


def test_samples_of_requests_are_passed_over_without_a_word(
    log: Log, reader: MetricsStreamReader, caplog: pytest.LogCaptureFixture
) -> None:
    log.create()
    log.append(0, request_event(), event(end_offset=1), request_event(), event(end_offset=2), request_event())
    log.append(3, request_event())
    assert list(ends(reader, MetricsRange(0, 0, 5))) == [1, 2]
    assert list(ends(reader, MetricsRange(3, 0, 1))) == []
    assert caplog.records == []
