"""The events of the pipeline's benchmark fill every table with something: what is empty is measured by nobody."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from django.db.models import Count
from pytest_django.fixtures import Settings

from queueapi.choices import LagStatus
from queueapi.config import config
from queueapi.models import (
    DeadLetterTrend,
    LagCurrent,
    LagMinute,
    PartitionHeat,
    PipelineRun,
    ProcessingMinute,
    QueueSkew,
    RequestCurrent,
    RequestStats,
    TenantUsageDay,
)
from tests.benchmarks.pipeline_events import ALWAYS, all_reporters, create_log, fill_log
from tests.benchmarks.pipeline_queues import create_queues
from tests.benchmarks.pipeline_samples import PARTITIONS, queue_id
from tests.services import require_or_skip
from workers.spark.pipeline import run_pipeline
from workers.spark.session import missing_java, spark_session

# Spark stores a batch on a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

# A hundred partitions, which is how many there are for each kind of trouble.
QUEUES = 2
# Longer than it takes to be sure of each.
MINUTES = 8


@pytest.fixture
def events(settings: Settings, tmp_path: Path) -> int:
    """How many there are in the log, of queues that exist."""
    if problem := missing_java():
        require_or_skip(problem)
    spark_session()  # started once, with the folder of the whole run
    settings.SWITCHYARD = replace(config(), data_dir=tmp_path)
    create_queues(QUEUES)
    start_ms = time.time_ns() // 1_000_000 - MINUTES * 60_000
    create_log(tmp_path / "log")
    return fill_log(tmp_path / "log", all_reporters(start_ms, ALWAYS, QUEUES), MINUTES)


def test_the_benchmark_s_events_tell_of_everything(events: int) -> None:
    assert run_pipeline().events == events
    assert PipelineRun.objects.values_list("unusable", flat=True).get() == 0

    statuses = LagCurrent.objects.values_list("status").order_by("status").annotate(Count("id"))
    assert {LagStatus(status): count for status, count in statuses} == {
        LagStatus.OK: 95, LagStatus.WARN: 2, LagStatus.STOP: 1, LagStatus.STALL: 1, LagStatus.REWIND: 1,
    }  # fmt: skip
    assert set(LagMinute.objects.values_list("status", flat=True)) > {LagStatus.WARN, LagStatus.STOP}

    processed = ProcessingMinute.objects.exclude(handled=0)
    assert processed.count() >= QUEUES * MINUTES
    assert not processed.filter(p50_ms=None).exists()
    assert set(DeadLetterTrend.objects.values_list("queue_id", flat=True)) == set(map(queue_id, range(QUEUES)))
    assert not RequestCurrent.objects.filter(lag_p99_ms=None).exists()
    assert RequestStats.objects.filter(answered__gt=0).count() == RequestStats.objects.count() > 0
    assert TenantUsageDay.objects.filter(sent__gt=0, handled__gt=0, dead_letters__gt=0).exists()
    assert PartitionHeat.objects.exclude(entities=[]).count() > PARTITIONS
    assert QueueSkew.objects.count() == QUEUES
