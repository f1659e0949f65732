"""A run leaves one line in the log and the pipeline's standing, whatever becomes of it."""

import logging

import pytest

from queueapi.models import PipelineStanding
from queuecore.errors import ProviderUnavailable, QueueError
from workers.spark import pipeline
from workers.spark.errors import PipelineFailed, SparkUnavailable
from workers.spark.pipeline import RunSummary
from workers.spark.tasks import run_pipeline_task

pytestmark = pytest.mark.django_db


def succeed() -> RunSummary:
    return RunSummary(batches=1, events=12, backlog=3, seconds=1.52)


def fail_with(monkeypatch: pytest.MonkeyPatch, error: QueueError) -> None:
    def fail() -> RunSummary:
        raise error

    monkeypatch.setattr(pipeline, "run_pipeline", fail)
    run_pipeline_task()


def test_a_run_is_one_line(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(pipeline, "run_pipeline", succeed)
    run_pipeline_task()
    assert [record.getMessage() for record in caplog.records] == ["pipeline: 12 events, 1.5 s"]
    standing = PipelineStanding.objects.get()
    assert (standing.took_s, standing.backlog_events, standing.error, standing.failed_runs) == (1.52, 3, "", 0)
    assert standing.succeeded_at is not None
    assert standing.succeeded_at >= standing.ran_at


def test_a_failure_is_one_line_and_not_the_workers_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fail_with(monkeypatch, PipelineFailed("the run ended early: no space left"))
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "no space left; pages show the last run's summaries" in record.getMessage()
    assert record.exc_info is None


def test_failures_are_counted_until_a_run_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, SparkUnavailable("Spark needs Java, and there is none in PATH; install Java 17"))
    fail_with(monkeypatch, ProviderUnavailable("Kafka is away; start it"))
    standing = PipelineStanding.objects.get()
    assert (standing.failed_runs, standing.code, standing.error) == (
        2,
        "provider_unavailable",
        "Kafka is away; start it",
    )
    assert (standing.succeeded_at, standing.backlog_events) == (None, None)
    monkeypatch.setattr(pipeline, "run_pipeline", succeed)
    run_pipeline_task()
    standing.refresh_from_db()
    assert (standing.failed_runs, standing.code, standing.error) == (0, "", "")
