"""Events in Parquet: published with their batch, found by their time, merged and removed as they grow old."""

import errno
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queueapi import event_files
from tests.unit.spark.test_decoding import event
from workers.spark import compaction, writing
from workers.spark.compaction import compact, settle_compaction
from workers.spark.decoding import Period
from workers.spark.raw import RawEvents
from workers.spark.reports import Report, together
from workers.spark.schemas import KINDS
from workers.spark.staging import Staging
from workers.spark.store import EventStore, Stretch, oldest_kept, stretches_of

KIND = "offset_samples"
NOON_MS = 1_700_000_000_000 // 86_400_000 * 86_400_000 + 43_200_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
ALL_TIME = Period(1, 1 << 42)
DAY_BEFORE, DAY = (datetime.fromtimestamp(ms / 1000, UTC).date().isoformat() for ms in (NOON_MS - DAY_MS, NOON_MS))


def raw(*data: bytes, partition: int = 0, start: int = 0) -> RawEvents:
    offsets = pa.array(range(start, start + len(data)), pa.int64())
    return RawEvents(partition, offsets, pa.array(data, pa.binary()))


@pytest.fixture
def store(tmp_path: Path) -> EventStore:
    return EventStore(tmp_path / "events")


def stage(folder: Path, *times_ms: int, positions: dict[str, int] | None = None) -> Report:
    data = [event(at_ms=at_ms, end_offset=number) for number, at_ms in enumerate(times_ms)]
    return Staging(folder, positions or {}, ALL_TIME).stage([raw(*data)])


def keep(store: EventStore, batch: str, *times_ms: int) -> None:
    with store.staging() as folder:
        store.prepare(batch, stage(folder, *times_ms), folder)
    store.publish(batch)


def times(paths: list[Path]) -> list[int]:
    read = (pq.read_table(path)["at"].cast(pa.int64()).to_pylist() for path in paths)
    return sorted(at // 1000 for column in read for at in column)


def everything(store: EventStore) -> list[int]:
    return times([file.path for kind, day in store.days() for file in store.files(kind, day)])


def test_a_store_has_an_id_of_its_own_and_keeps_it(store: EventStore, tmp_path: Path) -> None:
    assert store.id == EventStore(store.root).id
    assert store.id != EventStore(tmp_path / "another").id


def test_who_counts_events_knows_all_kinds() -> None:
    assert set(event_files.KINDS) == {kind.name for kind in KINDS}


def test_events_are_by_kind_and_by_the_day_they_are_of(store: EventStore) -> None:
    keep(store, "log.q.0", NOON_MS, NOON_MS - DAY_MS, NOON_MS + 5)
    assert store.days() == [(KIND, DAY_BEFORE), (KIND, DAY)]
    [file] = store.files(KIND, DAY)
    assert (file.oldest_ms, file.newest_ms) == (NOON_MS, NOON_MS + 5)


def test_a_report_says_how_far_events_go_and_of_which_minutes_they_are(tmp_path: Path) -> None:
    report = stage(tmp_path, NOON_MS, NOON_MS + 1, NOON_MS + 3 * MINUTE_MS)
    assert (report.events, report.offsets) == (3, {"0": 3})
    assert report.minutes == {KIND: [NOON_MS // MINUTE_MS, NOON_MS // MINUTE_MS + 3]}
    assert Report.from_json(report.to_json()) == report


def test_events_that_are_stored_already_are_left_out(tmp_path: Path) -> None:
    report = stage(tmp_path, NOON_MS, NOON_MS + 1, NOON_MS + 2, positions={"0": 2, "1": 9})
    assert (report.events, report.offsets, report.files[0].rows) == (1, {"0": 3}, 1)
    assert stage(tmp_path, NOON_MS, positions={"0": 2}).files == []


def test_reports_of_tasks_are_put_together(tmp_path: Path) -> None:
    first, second = stage(tmp_path, NOON_MS), stage(tmp_path, NOON_MS + MINUTE_MS, 0)
    whole = together([first, second])
    assert (whole.events, whole.unusable_events, len(whole.files)) == (3, 1, 2)
    assert whole.minutes == {KIND: [NOON_MS // MINUTE_MS, NOON_MS // MINUTE_MS + 1]}
    newest = datetime.fromtimestamp((NOON_MS + MINUTE_MS) / 1000, UTC)
    assert whole.newest_at(newest + timedelta(seconds=5)) == newest


def test_attempts_at_a_task_have_files_of_their_own(tmp_path: Path) -> None:
    """On a cluster, one that was given up may still write when the next one does."""
    first, second = stage(tmp_path, NOON_MS), stage(tmp_path, NOON_MS)
    assert first.files[0].name != second.files[0].name
    assert len(list(tmp_path.iterdir())) == 2


def test_what_was_committed_and_not_published_is_published_later(store: EventStore) -> None:
    with store.staging() as folder:
        store.prepare("log.q.0", stage(folder, NOON_MS), folder)
        store.prepare("log.q.1", stage(folder, NOON_MS + 1), folder)
    store.settle(lambda batch: batch == "log.q.0")
    assert everything(store) == [NOON_MS]
    store.settle(lambda _: True)
    assert everything(store) == [NOON_MS]


def test_publishing_goes_on_where_it_was_interrupted(store: EventStore) -> None:
    with store.staging() as folder:
        report = stage(folder, NOON_MS, NOON_MS - DAY_MS)
        pending = store.prepare("log.q.0", report, folder)
    told = (pending / "report.json").read_text()
    store.publish("log.q.0")
    pending.mkdir()
    (pending / "report.json").write_text(told)
    store.settle(lambda _: True)
    assert everything(store) == [NOON_MS - DAY_MS, NOON_MS]


def test_what_a_run_left_half_done_is_removed(store: EventStore) -> None:
    left = store.root / "pending" / "run"
    left.mkdir(parents=True)
    stage(left, NOON_MS)
    store.settle(lambda _: True)
    assert not left.exists()


def test_a_task_that_still_writes_does_not_fail_the_run(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder cannot be removed yet; the next run does so."""
    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", _not_empty)
        with store.staging() as folder:
            stage(folder, NOON_MS)
        assert folder.exists()
        store.settle(lambda _: True)
    store.settle(lambda _: True)
    assert not folder.exists()


def _not_empty(*_: object, **__: object) -> None:
    raise OSError(errno.ENOTEMPTY, "Directory not empty")


def test_files_are_found_by_the_time_they_are_of(store: EventStore) -> None:
    for number in range(4):
        keep(store, f"log.q.{number}", NOON_MS + number * HOUR_MS)
    assert times(store.find(KIND, [Stretch(NOON_MS + 1, NOON_MS + 2 * HOUR_MS + 1)])) == [
        NOON_MS + HOUR_MS,
        NOON_MS + 2 * HOUR_MS,
    ]
    assert store.find(KIND, [Stretch(NOON_MS + 1, NOON_MS + HOUR_MS)]) == []
    assert store.find("sent_samples", [Stretch(0, NOON_MS + DAY_MS)]) == []
    across = Stretch(NOON_MS - DAY_MS, NOON_MS + DAY_MS)
    assert len(store.find(KIND, [across])) == 4


def test_minutes_with_the_time_before_them_are_few_stretches() -> None:
    assert stretches_of([100, 101, 200], before_ms=5 * MINUTE_MS) == [
        Stretch(95 * MINUTE_MS, 102 * MINUTE_MS),
        Stretch(195 * MINUTE_MS, 201 * MINUTE_MS),
    ]
    assert stretches_of([], before_ms=1) == []


def test_small_files_of_an_hour_become_one(store: EventStore) -> None:
    for number in range(5):
        keep(store, f"log.q.{number}", NOON_MS + number, NOON_MS + HOUR_MS + number)
        keep(store, f"log.r.{number}", NOON_MS + number + 10)
    before = everything(store)
    assert compact(store, NOON_MS + HOUR_MS) == 5
    assert everything(store) == before
    assert len(store.files(KIND, DAY)) == 6
    assert compact(store, NOON_MS + HOUR_MS) == 0


def test_no_more_is_merged_into_one_than_a_task_should_read(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        keep(store, f"log.q.{number}", NOON_MS + number)
    size = max(file.path.stat().st_size for file in store.files(KIND, DAY))
    monkeypatch.setattr(compaction, "MERGED_BYTES", 2 * size)
    assert compact(store, NOON_MS + DAY_MS) == 4
    assert [len(times([file.path])) for file in store.files(KIND, DAY)] == [2, 2, 1]
    assert everything(store) == [NOON_MS + number for number in range(5)]


def test_a_merged_file_has_few_groups_of_rows(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "GROUP_ROWS", 4)
    for number in range(4):
        keep(store, f"log.q.{number}", NOON_MS + number, NOON_MS + number)
    compact(store, NOON_MS + DAY_MS)
    [merged] = store.files(KIND, DAY)
    assert (pq.read_metadata(merged.path).num_rows, pq.read_metadata(merged.path).num_row_groups) == (8, 2)


def test_large_files_and_single_ones_stay(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(store, "log.q.0", NOON_MS)
    assert compact(store, NOON_MS + DAY_MS) == 0
    keep(store, "log.q.1", NOON_MS + 1)
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    assert compact(store, NOON_MS + DAY_MS) == 0


@pytest.mark.parametrize("is_named", [True, False])
def test_a_compaction_that_was_interrupted_doubles_and_loses_nothing(store: EventStore, is_named: bool) -> None:
    keep(store, "log.q.0", NOON_MS)
    keep(store, "log.q.1", NOON_MS + 1)
    parts = [file.path for file in store.files(KIND, DAY)]
    merged = parts[0].with_name(f"{NOON_MS}-{NOON_MS + 1}-merged.parquet")
    draft = merged if is_named else merged.with_suffix(".draft")
    pq.write_table(pq.read_table(parts), draft)
    merged.with_suffix(".replaces").write_text(json.dumps([path.name for path in parts]))
    settle_compaction(store)
    assert everything(store) == [NOON_MS, NOON_MS + 1]
    assert {path.suffix for path in parts[0].parent.iterdir()} == {".parquet"}


def test_a_report_that_cannot_be_read_holds_nothing_up(store: EventStore, caplog: pytest.LogCaptureFixture) -> None:
    with store.staging() as folder:
        pending = store.prepare("log.q.0", stage(folder, NOON_MS), folder)
    (pending / "report.json").write_text("")
    store.settle(lambda _: True)
    assert (pending.exists(), everything(store)) == (False, [])
    assert "the report of batch log.q.0 cannot be read" in caplog.text


@pytest.mark.parametrize("left", [b"", b"PAR1PAR", b"PAR1 and no end"])
def test_a_file_that_is_cut_short_is_set_aside(
    store: EventStore, left: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    keep(store, "log.q.0", NOON_MS)
    keep(store, "log.q.1", NOON_MS + 1)
    [first, _] = store.files(KIND, DAY)
    first.path.write_bytes(left)
    assert times(store.find(KIND, [Stretch(NOON_MS, NOON_MS + MINUTE_MS)])) == [NOON_MS + 1]
    assert f"{first.path} is cut short and set aside" in caplog.text
    assert everything(store) == [NOON_MS + 1]


def test_files_that_cannot_be_merged_stay(store: EventStore, caplog: pytest.LogCaptureFixture) -> None:
    keep(store, "log.q.0", NOON_MS)
    keep(store, "log.q.1", NOON_MS + 1)
    keep(store, "log.q.2", NOON_MS + HOUR_MS)
    keep(store, "log.q.3", NOON_MS + HOUR_MS + 1)
    [file, *_] = store.files(KIND, DAY)
    file.path.write_bytes(b"PAR1 with an end: PAR1")
    assert compact(store, NOON_MS + DAY_MS) == 2
    assert "2 files of offset_samples stay as they are" in caplog.text
    assert len(store.files(KIND, DAY)) == 3


def test_without_the_list_of_what_it_replaces_a_merged_file_is_kept(
    store: EventStore, caplog: pytest.LogCaptureFixture
) -> None:
    keep(store, "log.q.0", NOON_MS)
    [part] = store.files(KIND, DAY)
    merged = part.path.with_name(f"{NOON_MS}-{NOON_MS}-merged.parquet")
    merged.write_bytes(part.path.read_bytes())
    merged.with_suffix(".replaces").write_text("")
    settle_compaction(store)
    assert len(store.files(KIND, DAY)) == 2
    assert "cannot be read" in caplog.text
    settle_compaction(store)


def test_what_a_commit_relies_on_is_on_disk(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    with store.staging() as folder:
        pending = store.prepare("log.q.0", stage(folder, NOON_MS), folder)
    relied_on = [pending.parent, pending, *pending.iterdir()]
    assert len(relied_on) == 4
    assert {path.stat().st_ino for path in relied_on} <= synced


def test_days_go_when_they_are_old(store: EventStore) -> None:
    keep(store, "log.q.0", NOON_MS, NOON_MS - DAY_MS, NOON_MS - 2 * DAY_MS)
    noon = datetime.fromtimestamp(NOON_MS / 1000, UTC)
    assert store.forget(oldest_kept(noon, retention_days=1)) == 1
    assert everything(store) == [NOON_MS - DAY_MS, NOON_MS]
