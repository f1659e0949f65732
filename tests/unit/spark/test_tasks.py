"""A run leaves one line in the log, whatever becomes of it."""

import logging

import pytest

from workers.spark import pipeline
from workers.spark.errors import PipelineFailed
from workers.spark.pipeline import RunSummary
from workers.spark.tasks import run_pipeline_task


def test_a_run_is_one_line(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(pipeline, "run_pipeline", lambda: RunSummary(batches=1, events=12, seconds=1.52))
    run_pipeline_task()
    assert [record.getMessage() for record in caplog.records] == ["pipeline: 12 events, 1.5 s"]


def test_a_failure_is_one_line_and_not_the_workers_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> RunSummary:
        raise PipelineFailed("the run ended early: no space left")

    monkeypatch.setattr(pipeline, "run_pipeline", fail)
    run_pipeline_task()
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "no space left; pages show the last run's summaries" in record.getMessage()
    assert record.exc_info is None
