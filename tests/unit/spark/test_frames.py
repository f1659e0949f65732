"""What transforms are given: the batch's events, and what is stored of the minutes that these are of."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from queuecore.proto.events_pb2 import RequestSample
from tests.unit.spark.test_decoding import consumed_event, wrapped
from tests.unit.spark.test_store import ALL_TIME, DAY_MS, HOUR_MS, MINUTE_MS, NOON_MS, keep, raw, stage
from workers.spark.compaction import compact
from workers.spark.frames import BatchFrames, StoredFrames, read_events
from workers.spark.schemas import CONSUMED_SAMPLES, KINDS, OFFSET_SAMPLES, REQUEST_SAMPLES, SENT_SAMPLES
from workers.spark.staging import Staging
from workers.spark.store import EventStore, Stretch


@pytest.fixture
def store(tmp_path: Path) -> EventStore:
    return EventStore(tmp_path / "events")


def keep_events(store: EventStore, batch: str, *data: bytes) -> None:
    with store.staging() as folder:
        store.prepare(batch, Staging(folder, {}, ALL_TIME).stage([raw(*data)]), folder)
    store.publish(batch)


def seconds(frame: DataFrame) -> list[float]:
    """The times of the events, as seconds after noon."""
    noon = datetime.fromtimestamp(NOON_MS / 1000, UTC)
    return sorted((at - noon).total_seconds() for at in frame.toArrow()["at"].to_pylist())


def test_the_window_is_the_time_before_and_whole_minutes(
    spark: SparkSession, store: EventStore, tmp_path: Path
) -> None:
    """A late event's minute is all there, so that it can be made anew as a whole."""
    keep(store, "log.q.0", NOON_MS - HOUR_MS + 1_000, NOON_MS - HOUR_MS + 59_000, NOON_MS - HOUR_MS + 2 * MINUTE_MS)
    keep(store, "log.q.1", NOON_MS - 10 * MINUTE_MS - 1_000, NOON_MS - 9 * MINUTE_MS, NOON_MS - 1_000)
    report = stage(tmp_path, NOON_MS + 5_000, NOON_MS - HOUR_MS + 30_000)
    frames = BatchFrames(spark, store, tmp_path, report, window_s=600)
    assert seconds(frames.batch(OFFSET_SAMPLES)) == [-3570, 5]
    assert seconds(frames.window(OFFSET_SAMPLES)) == [-3599, -3541, -540, -1]
    assert seconds(read_events(spark, OFFSET_SAMPLES, frames.minute_files(OFFSET_SAMPLES))) == [-3599, -3541]


def test_what_there_is_nothing_of_is_an_empty_frame(spark: SparkSession, store: EventStore, tmp_path: Path) -> None:
    frames = BatchFrames(spark, store, tmp_path, stage(tmp_path, NOON_MS), window_s=600)
    assert (frames.has(OFFSET_SAMPLES), frames.has(SENT_SAMPLES)) == (True, False)
    for kind in KINDS:
        assert frames.window(kind).schema == kind.spark
    assert frames.batch(SENT_SAMPLES).isEmpty()


def test_what_consumers_said_is_of_the_minutes_that_are_judged(
    spark: SparkSession, store: EventStore, tmp_path: Path
) -> None:
    """A batch without any report of theirs: a STALL would be a STOP until the next one."""
    keep_events(store, "log.q.0", *(consumed_event(NOON_MS - second * 1000) for second in (601, 119, 1)))
    frames = BatchFrames(spark, store, tmp_path, stage(tmp_path, NOON_MS), window_s=600)
    assert frames.window(CONSUMED_SAMPLES).isEmpty()
    assert seconds(frames.window(CONSUMED_SAMPLES, of=OFFSET_SAMPLES)) == [-119, -1]


def test_a_stored_file_that_came_to_harm_does_not_stop_what_is_new(
    spark: SparkSession, store: EventStore, tmp_path: Path
) -> None:
    keep(store, "log.q.0", NOON_MS - 2_000)
    keep(store, "log.q.1", NOON_MS - 1_000)
    harmed = store.find(OFFSET_SAMPLES.name, [Stretch(NOON_MS - 2_000, NOON_MS - 1_000)])[0]
    harmed.write_bytes(b"PAR1 neither rows nor a footer PAR1")
    frames = BatchFrames(spark, store, tmp_path, stage(tmp_path, NOON_MS), window_s=600)
    assert seconds(frames.window(OFFSET_SAMPLES)) == [-1]
    assert seconds(frames.batch(OFFSET_SAMPLES)) == [0]


def test_what_was_stored_before_a_field_came_is_read_and_merged_without_it(
    spark: SparkSession, store: EventStore
) -> None:
    for second in range(2):
        sample = RequestSample(request_topic="t.requests", pending=3)
        keep_events(store, f"log.q.{second}", wrapped(NOON_MS + second * 1000, request_sample=sample))
    hour = Stretch(NOON_MS, NOON_MS + HOUR_MS)
    older = store.find(REQUEST_SAMPLES.name, [Stretch(NOON_MS, NOON_MS + 1)])[0]
    pq.write_table(pq.read_table(older).drop_columns(["age_buckets"]), older)
    assert ages(StoredFrames(spark, store, hour, window_s=600)) == [None, []]
    assert compact(store, NOON_MS + DAY_MS) == 2
    assert ages(StoredFrames(spark, store, hour, window_s=600)) == [None, []]


def ages(frames: StoredFrames) -> list[list[int] | None]:
    return [row.age_buckets for row in frames.batch(REQUEST_SAMPLES).sort("at").collect()]


def test_a_day_has_its_own_events_and_the_time_before(spark: SparkSession, store: EventStore) -> None:
    keep(store, "log.q.0", NOON_MS - 1_000, NOON_MS, NOON_MS + HOUR_MS)
    frames = StoredFrames(spark, store, Stretch(NOON_MS, NOON_MS + HOUR_MS), window_s=600)
    assert seconds(frames.batch(OFFSET_SAMPLES)) == [0]
    assert seconds(frames.window(OFFSET_SAMPLES)) == [-1]
    assert frames.has(OFFSET_SAMPLES)


def test_what_several_summaries_share_is_made_once_and_released(
    spark: SparkSession, store: EventStore, tmp_path: Path
) -> None:
    frames = BatchFrames(spark, store, tmp_path, stage(tmp_path, NOON_MS), window_s=600)
    shared = frames.kept("samples", lambda: frames.batch(OFFSET_SAMPLES))
    assert frames.kept("samples", lambda: frames.batch(SENT_SAMPLES)) is shared
    assert shared.is_cached
    frames.release()
    assert not shared.is_cached
