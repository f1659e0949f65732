"""Old summaries go, and back-fill is asked for within what is kept. No Spark is needed for either."""

import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone
from pytest_django.fixtures import Settings

from queueapi.actions.actor import SYSTEM
from queueapi.actions.operations import cancel_operation, start_operation
from queueapi.actions.pipeline import start_backfill
from queueapi.actions.summary_retention import purge_summaries
from queueapi.celery_config import SPARK_QUEUE, TASKS_QUEUE
from queueapi.config import Config, config
from queueapi.errors import InvalidInput
from queueapi.models import (
    AuditEntry,
    LagCurrent,
    LagDay,
    LagHour,
    LagMinute,
    Operation,
    PartitionHeat,
    PipelineStanding,
    ProcessingDay,
    ProcessingHour,
    ProcessingMinute,
    Queue,
    QueueSkew,
    RequestCurrent,
    RequestDay,
    RequestHour,
    RequestStats,
    Tenant,
    TenantUsageDay,
)
from tests.integration.conftest import Installation
from tests.stored_events import store_events
from tests.unit.spark.test_store import DAY_MS, HOUR_MS, everything, keep
from workers.operations.runner import run_operation
from workers.spark.backfill import backfill_day
from workers.spark.errors import PipelineFailed
from workers.spark.pipeline import event_store, run_pipeline
from workers.spark.store import EventStore
from workers.spark.tasks import run_pipeline_task
from workers.spark.upkeep import Upkeep, keep_up_store

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


@pytest.mark.django_db
def test_minutes_go_first_and_days_last(queue: Queue) -> None:
    ages = [timedelta(days=days) for days in (0, 1, 3, 59, 61, 729, 731)]
    for model in (LagMinute, LagHour, LagDay):
        model.objects.bulk_create(model(queue=queue, at=NOW - age, lag_messages=1) for age in ages)
    for model in (ProcessingMinute, ProcessingHour, ProcessingDay):
        model.objects.bulk_create(model(queue=queue, at=NOW - age) for age in ages)
    for model in (RequestStats, RequestHour, RequestDay):
        model.objects.bulk_create(model(service_id="s", request_topic="t", at=NOW - age) for age in ages)
    TenantUsageDay.objects.bulk_create(TenantUsageDay(tenant_id=uuid4(), day=(NOW - age).date()) for age in ages)
    for hours in (1, 25):
        RequestCurrent.objects.create(service_id=f"s{hours}", request_topic="t", as_of=NOW - timedelta(hours=hours))
    assert purge_summaries(Config(), NOW, chunk=2) == 3 * (5 + 3 + 1) + 1 + 1
    for models in (
        (LagMinute, LagHour, LagDay),
        (ProcessingMinute, ProcessingHour, ProcessingDay),
        (RequestStats, RequestHour, RequestDay),
    ):
        assert [model.objects.count() for model in models] == [2, 4, 6]
    assert (TenantUsageDay.objects.count(), RequestCurrent.objects.get().service_id) == (6, "s1")
    assert purge_summaries(Config(), NOW) == 0


@pytest.mark.django_db
def test_what_is_of_now_goes_once_nothing_has_renewed_it_for_as_long_as_minutes_are_kept(queue: Queue) -> None:
    other = Queue.objects.create(tenant=queue.tenant, name="Silent", topic="tb_silent", handler="count")
    kept, gone = (NOW - timedelta(days=days) for days in (1, 3))
    for one, at in ((queue, kept), (other, gone)):
        LagCurrent.objects.create(queue=one, partition=0, end_offset=1, lag_messages=1, as_of=at)
        PartitionHeat.objects.create(queue=one, partition=0, share=1.0, as_of=at)
        QueueSkew.objects.create(queue=one, skew=1.0, as_of=at)
    LagCurrent.objects.create(queue=queue, partition=1, end_offset=1, lag_messages=1, as_of=gone)
    assert purge_summaries(Config(), NOW) == 4
    left = [LagCurrent.objects.get(), PartitionHeat.objects.get(), QueueSkew.objects.get()]
    assert [(row.queue, row.as_of) for row in left] == [(queue, kept)] * 3


@pytest.fixture
def queue(db: None) -> Queue:
    tenant = Tenant.objects.create(name="Acme")
    return Queue.objects.create(tenant=tenant, name="Main", topic="tb_main", handler="count")


@pytest.mark.django_db
def test_the_store_is_kept_small(settings: Settings, tmp_path: Path) -> None:
    settings.SWITCHYARD = replace(config(), data_dir=tmp_path)
    store = event_store(config())
    hour_ms = (time.time_ns() // 1_000_000 - 2 * HOUR_MS) // HOUR_MS * HOUR_MS
    keep(store, "log.q.0", hour_ms)
    keep(store, "log.q.1", hour_ms + 1, hour_ms - 10 * DAY_MS)
    assert keep_up_store() == Upkeep(forgotten_days=1, merged_files=2)
    assert everything(store) == [hour_ms, hour_ms + 1]


@pytest.mark.django_db
def test_summaries_of_another_store_are_left_alone(settings: Settings, tmp_path: Path) -> None:
    settings.SWITCHYARD = replace(config(), data_dir=tmp_path)
    PipelineStanding.objects.create(ran_at=NOW, store_id="another")
    with pytest.raises(PipelineFailed, match="run one pipeline for each database"):
        run_pipeline()
    with pytest.raises(PipelineFailed, match="run one pipeline for each database"):
        backfill_day(today(), lambda: None)
    told = StringIO()
    call_command("adopt_event_store", stdout=told)
    assert "the database's from then on" in told.getvalue()
    assert run_pipeline().batches == 0


@pytest.mark.parametrize("error", [OSError("no space left"), ValueError("no JSON"), OperationalError("locked")])
@pytest.mark.django_db
def test_whatever_a_run_fails_of_the_standing_tells_it(
    error: Exception, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SWITCHYARD = replace(config(), data_dir=tmp_path)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(EventStore, "settle", fail)
    run_pipeline_task()
    standing = PipelineStanding.objects.get()
    assert (standing.code, standing.error) == ("pipeline_failed", f"the run ended early: {error}")


def today() -> date:
    return timezone.now().date()


@pytest.mark.parametrize(
    ("first", "last", "why"),
    [
        (0, -1, "give the first day first"),
        (0, 1, "is yet to come"),
        (-7, 0, "events are kept no more .* the first whole day is"),
    ],
)
@pytest.mark.django_db
def test_back_fill_is_refused_beyond_what_is_kept(first: int, last: int, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        start_backfill(SYSTEM, today() + timedelta(days=first), today() + timedelta(days=last))
    assert not Operation.objects.exists()


def test_back_fill_is_one_operation_at_a_time_and_the_spark_worker_s(installation: Installation) -> None:
    store_events(today(), 1)
    told = StringIO()
    call_command("backfill_summaries", "--from", today().isoformat(), stdout=told)
    operation = Operation.objects.get(kind="backfill")
    assert (str(operation.id) in told.getvalue(), operation.total) == (True, 1)
    assert AuditEntry.objects.filter(action="start_operation", object_id=str(operation.id)).exists()
    with pytest.raises(CommandError, match="wait for that, or cancel it"):
        call_command("backfill_summaries", "--from", today().isoformat())
    assert _woken(installation, SPARK_QUEUE) == 1
    cancel_operation(SYSTEM, operation.id)
    run_operation(operation.id)
    operation.refresh_from_db()
    assert operation.state == "cancelled"


def test_other_operations_are_other_workers(installation: Installation) -> None:
    before = _woken(installation, TASKS_QUEUE)
    start_operation(SYSTEM, "something_else", "Something else", {}, 1)
    assert (_woken(installation, TASKS_QUEUE), _woken(installation, SPARK_QUEUE)) == (before + 1, 0)


def _woken(installation: Installation, queue: str) -> int:
    """How many messages wait there."""
    return len(list((installation.folder / "celery" / "messages").glob(f"*.{queue}.msg")))
