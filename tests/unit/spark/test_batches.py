"""What a batch leaves in the database, once, on either one."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from queueapi.actions.actor import SYSTEM
from queueapi.actions.pipeline import adopt_event_store
from queueapi.models import AuditEntry, PipelineRun
from workers.spark import batches
from workers.spark.batches import Batch, check_store, is_stored, known_positions, store_batch
from workers.spark.errors import PipelineFailed
from workers.spark.reports import Report, StagedFile
from workers.spark.sinks import Row, Sink

pytestmark = pytest.mark.usefixtures("database")

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


class Counter:
    """A sink that counts."""

    def __init__(self) -> None:
        self.rows = 0

    def write(self, rows: Iterable[Row]) -> int:
        self.rows += (count := len(list(rows)))
        return count

    def whole(self) -> Sink:
        return self


@pytest.fixture
def sink() -> Counter:
    return Counter()


def batch(number: int, query: str = "log.1", store: str = "here") -> Batch:
    return Batch("log", store, query, number, NOON, known_positions("log"))


def report(events: int = 5, **offsets: int) -> Report:
    files = [StagedFile("f", "offset_samples", "2026-01-02", events, NOON_MS - 5, NOON_MS)]
    return Report(
        events, unusable={"?": 2}, offsets={name[1:]: offset for name, offset in offsets.items()}, files=files
    )


def test_a_batch_is_stored_with_its_run(sink: Counter) -> None:
    assert store_batch(batch(0), report(p0=3, p1=4), [(sink, [{}, {}]), (sink, [{}])]) == 3
    run = PipelineRun.objects.get()
    assert (run.query, run.batch_id, run.events, run.unusable, run.rows) == ("log.1", 0, 5, 2, 3)
    assert (run.newest_event_at, run.offsets) == (NOON, {"0": 3, "1": 4})
    assert is_stored(batch(0).name)
    assert not is_stored(batch(1).name)


def test_a_clock_that_is_ahead_makes_no_figures_of_a_time_to_come(sink: Counter) -> None:
    in_a_minute = int((timezone.now() + timedelta(seconds=61)).timestamp() * 1000)
    ahead = replace(report(), files=[StagedFile("f", "request_samples", "2026-01-02", 1, NOON_MS, in_a_minute)])
    store_batch(batch(0), ahead, [(sink, [{}])])
    run = PipelineRun.objects.get()
    assert (run.newest_event_at, run.lag) == (run.finished_at, timedelta(0))


def test_a_repeated_batch_has_no_effect(sink: Counter) -> None:
    store_batch(batch(0), report(p0=3), [(sink, [{}])])
    assert store_batch(batch(0), report(p0=3), [(sink, [{}])]) == 0
    assert (sink.rows, PipelineRun.objects.count()) == (1, 1)


def test_the_same_number_of_another_checkpoint_is_another_batch(sink: Counter) -> None:
    store_batch(batch(0), report(p0=3), [(sink, [{}])])
    assert store_batch(batch(0, "log.2"), report(p0=9), [(sink, [{}])]) == 1


def test_positions_are_those_of_all_partitions_so_far(sink: Counter) -> None:
    store_batch(batch(0), report(p0=3, p1=4), [])
    store_batch(batch(1), report(p1=8), [])
    store_batch(replace(batch(0, "kafka.1"), provider="kafka", positions={}), report(p0=1), [])
    assert known_positions("log") == {"0": 3, "1": 8}
    assert known_positions("kafka") == {"0": 1}


def test_a_batch_that_another_pipeline_overtook_is_refused(sink: Counter) -> None:
    late = batch(0, "log.2")
    store_batch(batch(0), report(p0=3), [])
    with pytest.raises(PipelineFailed, match="another pipeline has stored events meanwhile"):
        store_batch(late, report(p0=3), [(sink, [{}])])
    assert (sink.rows, PipelineRun.objects.count()) == (0, 1)


def test_another_store_s_events_are_refused_until_it_is_adopted(sink: Counter) -> None:
    """Two installations with one database that take turns: the second one's positions are right."""
    store_batch(batch(0), report(p0=3), [])
    with pytest.raises(PipelineFailed, match=r"store here, here is there.* run manage.py adopt_event_store"):
        store_batch(batch(0, "log.2", store="there"), report(p0=3), [(sink, [{}])])
    assert (sink.rows, PipelineRun.objects.count()) == (0, 1)
    assert adopt_event_store(SYSTEM)
    assert AuditEntry.objects.get().before == {"store_id": "here"}
    assert store_batch(batch(0, "log.2", store="there"), report(p0=3), [(sink, [{}])]) == 1
    with pytest.raises(PipelineFailed):
        check_store("here")
    check_store("there")


def test_who_has_no_store_adopts_nothing() -> None:
    assert not adopt_event_store(SYSTEM)
    check_store("any")


def test_summaries_and_run_are_stored_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(batches, "_forget_old_runs", fail)
    with pytest.raises(RuntimeError, match="disk full"):
        store_batch(batch(0), report(p0=3), [])
    assert not PipelineRun.objects.exists()


def test_only_the_last_runs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "RUNS_KEPT", 3)
    for number in range(5):
        store_batch(batch(number), report(p0=number), [])
    assert sorted(PipelineRun.objects.values_list("batch_id", flat=True)) == [2, 3, 4]
