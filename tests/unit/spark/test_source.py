"""The stream over a real log, as Spark calls it."""

import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from queueapi.config import Config
from queuecore.messages import QueueMessage, Record
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event
from queuecore.providers.base import DAY_MS, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import encode_body
from queuecore.providers.log.files import partition_dir, segment_path
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition
from tests.unit.spark.test_decoding import event
from workers.spark import source
from workers.spark.options import KEPT_MS, STAGE, START, source_options
from workers.spark.reports import Report
from workers.spark.source import BATCH_EVENTS, LARGEST_TASK, MetricsRange, MetricsStreamReader, MetricsTask

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


def ends(reader: MetricsStreamReader, *ranges: MetricsRange) -> list[int]:
    """The end offset in each event: which ones these are."""
    data = (one for batch in reader.raw(MetricsTask(ranges)) for one in batch.data)
    return [Event.FromString(one.as_py()).offset_sample.end_offset for one in data]


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
    [task] = reader.partitions(start, end)
    assert task.ranges == (MetricsRange(1, 0, 2),)
    assert ends(reader, *task.ranges) == [1, 2]


def test_reading_goes_on_where_it_left_off(log: Log, reader: MetricsStreamReader) -> None:
    log.create()
    log.append(0, *(event(end_offset=number) for number in range(5)))
    [task] = reader.partitions({"0": 3}, {"0": 5})
    assert ends(reader, *task.ranges) == [3, 4]


def test_many_small_batches_are_decoded_together(log: Log, reader: MetricsStreamReader) -> None:
    log.create()
    for number in range(6):
        log.append(0, event(end_offset=2 * number + 1), event(end_offset=2 * number + 2))
    [found] = reader.raw(MetricsTask((MetricsRange(0, 3, 10),)))
    assert found.offsets.to_pylist() == list(range(3, 10))
    assert ends(reader, MetricsRange(0, 3, 10)) == list(range(4, 11))


class Records:
    """A provider that makes a record of each event, and gives at most so many at once."""

    def __init__(self, count: int, at_once: int) -> None:
        self.asked: list[int] = []
        self._records = [Record(METRICS_TOPIC, 0, offset, 0, None, {}, b"e") for offset in range(count)]
        self._at_once = at_once

    def read(self, partition: ProviderPartition, offset: int, max_records: int) -> list[Record]:
        self.asked.append(max_records)
        return self._records[offset : offset + min(max_records, self._at_once)]


def test_of_a_provider_of_records_no_more_is_read_than_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    provider: Any = SimpleNamespace()
    reader: Any = Records(count=100, at_once=20)
    monkeypatch.setattr(source, "READ_OBJECTS", 30)
    columns = list(source._columns(provider, reader, MetricsRange(0, 5, 60)))
    assert [offset for column in columns for offset in column.offsets] == list(range(5, 60))
    assert reader.asked == [30, 30, 15]


def test_a_new_checkpoint_begins_where_the_summaries_end(log: Log) -> None:
    log.create()
    log.append(0, *(event(end_offset=number) for number in range(5)))
    reader = MetricsStreamReader(source_options(log.config) | {START: '{"0": 3}'})
    assert reader.initialOffset() == {"0": 3, "1": 0, "2": 0, "3": 0}


def test_a_partition_that_is_new_is_read_from_its_beginning(reader: MetricsStreamReader) -> None:
    [task] = reader.partitions({"0": 5}, {"0": 5, "4": 2})
    assert task.ranges == (MetricsRange(4, 0, 2),)


def test_a_topic_made_anew_is_read_from_its_beginning(reader: MetricsStreamReader) -> None:
    [task] = reader.partitions({"0": 50}, {"0": 2})
    assert task.ranges == (MetricsRange(0, 0, 2),)


def test_little_is_one_task_s(reader: MetricsStreamReader) -> None:
    [task] = reader.partitions({}, {"0": 10, "1": 30, "2": 20})
    assert sorted(task.ranges, key=lambda one: one.partition) == [
        MetricsRange(0, 0, 10),
        MetricsRange(1, 0, 30),
        MetricsRange(2, 0, 20),
    ]


def test_a_backlog_is_shared_by_many_tasks_and_all_of_it_is_read_once(reader: MetricsStreamReader) -> None:
    tasks = reader.partitions({"0": 100}, {"0": 3_000_100, "1": 900_000})
    assert len(tasks) > 7
    assert max(sum(one.events for one in task.ranges) for task in tasks) <= LARGEST_TASK
    pieces = sorted((one.partition, one.start, one.end) for task in tasks for one in task.ranges)
    for (partition, _, end), (other, start, _) in pairwise(pieces):
        assert start == (end if other == partition else 0)
    assert (pieces[0], pieces[-1][2]) == ((0, 100, 100 + pieces[0][2] - 100), 900_000)


def test_a_batch_takes_so_much_of_a_backlog_and_no_more(reader: MetricsStreamReader) -> None:
    reader._target = {"0": BATCH_EVENTS * 3, "1": 5}
    first = reader.latestOffset({}, ALL)
    assert first == {"0": BATCH_EVENTS // 2, "1": 5}
    second = reader.latestOffset(first, ALL)
    assert second == {"0": BATCH_EVENTS, "1": 5}
    assert reader.latestOffset(reader._target, ALL) == reader._target


def test_events_that_retention_removed_are_passed_over(
    log: Log, reader: MetricsStreamReader, caplog: pytest.LogCaptureFixture
) -> None:
    log.create()
    for number in range(3):
        log.append(2, event(end_offset=number))
    log.remove_segment(2, 0)
    assert ends(reader, MetricsRange(2, 0, 3)) == [1, 2]
    [record] = caplog.records
    assert "begins at offset 1" in record.getMessage()
    assert "1 events are not summarised" in record.getMessage()


def test_everything_removed_is_nothing_to_read(log: Log, reader: MetricsStreamReader) -> None:
    log.create()
    for number in range(3):
        log.append(2, event(end_offset=number))
    for base in range(2):
        log.remove_segment(2, base)
    assert ends(reader, MetricsRange(2, 0, 2)) == []


def test_a_task_leaves_files_and_says_what_is_in_them(log: Log, tmp_path: Path) -> None:
    log.create()
    now_ms = time.time_ns() // 1_000_000
    log.append(0, event(at_ms=now_ms, end_offset=1), b"\xff", event(at_ms=now_ms, end_offset=2))
    log.append(3, event(at_ms=now_ms, end_offset=3))
    stage = tmp_path / "stage"
    stage.mkdir()
    options = {START: '{"0": 1}', STAGE: str(stage), KEPT_MS: str(DAY_MS)}
    reader = MetricsStreamReader(source_options(log.config) | options)
    [batch] = reader.read(MetricsTask((MetricsRange(0, 0, 3), MetricsRange(3, 0, 1))))
    report = Report.from_json(batch.column("report")[0].as_py())
    assert (report.events, report.unusable) == (3, {"not a protobuf event": 1})
    assert report.examples == {"not a protobuf event": "queue.metrics[0] offset 1"}
    assert report.offsets == {"0": 3, "3": 1}
    [file] = report.files
    assert pq.read_table(stage / file.name)["end_offset"].to_pylist() == [2, 3]
