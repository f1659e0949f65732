"""What a batch leaves in the database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from queueapi.models import Queue, Tenant
from queueapi.models.summary import LagCurrent, PipelineRun
from workers.spark import sinks
from workers.spark.sinks import Batch, LagRow, store_batch

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def queue() -> Queue:
    tenant = Tenant.objects.create(name="Acme")
    return Queue.objects.create(tenant=tenant, name="Main", topic="tb_main", handler="count")


@pytest.fixture
def row(queue: Queue) -> LagRow:
    return LagRow(queue.id, 0, "tb_main.0", "main-consumer-0", 100, 40, 60, 10.0, None, NOON, samples=2)


def batch(number: int, query: str = "lag:1") -> Batch:
    return Batch(query, number, started_at=NOON)


def test_a_batch_is_stored_with_its_run(row: LagRow) -> None:
    assert store_batch(batch(0), [row, replace(row, partition=1, samples=3, as_of=NOON + timedelta(seconds=5))])
    assert list(LagCurrent.objects.values_list("partition", "lag_messages")) == [(0, 60), (1, 60)]
    run = PipelineRun.objects.get()
    assert (run.query, run.batch_id, run.events) == ("lag:1", 0, 5)
    assert run.newest_event_at == NOON + timedelta(seconds=5)


def test_a_repeated_batch_has_no_effect(row: LagRow) -> None:
    store_batch(batch(0), [row])
    later = replace(row, lag_messages=999, as_of=NOON + timedelta(hours=1))
    assert not store_batch(batch(0), [later])
    assert LagCurrent.objects.get().lag_messages == 60
    assert PipelineRun.objects.count() == 1


def test_the_same_number_of_another_checkpoint_is_another_batch(row: LagRow) -> None:
    store_batch(batch(0), [row])
    later = replace(row, lag_messages=7, as_of=NOON + timedelta(seconds=10))
    assert store_batch(batch(0, "lag:2"), [later])
    assert LagCurrent.objects.get().lag_messages == 7


@pytest.mark.parametrize("seconds", [0, -5])
def test_what_is_stored_is_not_replaced_by_what_is_not_newer(row: LagRow, seconds: int) -> None:
    store_batch(batch(0), [row])
    store_batch(batch(1), [replace(row, lag_messages=999, as_of=NOON + timedelta(seconds=seconds))])
    assert LagCurrent.objects.get().lag_messages == 60


def test_a_queue_that_is_gone_holds_nothing_up(row: LagRow) -> None:
    assert store_batch(batch(0), [replace(row, queue_id=uuid4()), row])
    assert LagCurrent.objects.get().queue_id == row.queue_id


def test_summaries_and_run_are_stored_together_or_not_at_all(row: LagRow, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(sinks, "_forget_old_runs", fail)
    with pytest.raises(RuntimeError, match="disk full"):
        store_batch(batch(0), [row])
    assert not LagCurrent.objects.exists()
    assert not PipelineRun.objects.exists()


def test_only_the_last_runs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "RUNS_KEPT", 3)
    for number in range(5):
        store_batch(batch(number), [])
    assert sorted(PipelineRun.objects.values_list("batch_id", flat=True)) == [2, 3, 4]
