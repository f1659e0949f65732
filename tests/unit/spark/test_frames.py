"""What transforms are given: the batch's events, and what is stored of the minutes that these are of."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.unit.spark.test_decoding import consumed_event
from tests.unit.spark.test_store import ALL_TIME, HOUR_MS, MINUTE_MS, NOON_MS, keep, raw, stage
from workers.spark.frames import BatchFrames, StoredFrames, read_events
from workers.spark.schemas import CONSUMED_SAMPLES, KINDS, OFFSET_SAMPLES, SENT_SAMPLES
from workers.spark.staging import Staging
from workers.spark.store import EventStore, Stretch


@pytest.fixture
def store(tmp_path: Path) -> EventStore:
    return EventStore(tmp_path / "events")


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
    said = (consumed_event(NOON_MS - second * 1000) for second in (601, 119, 1))
    with store.staging() as folder:
        store.prepare("log.q.0", Staging(folder, {}, ALL_TIME).stage([raw(*said)]), folder)
    store.publish("log.q.0")
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
