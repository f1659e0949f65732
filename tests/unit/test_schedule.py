"""What is done again and again: how often, and by which worker."""

from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from queueapi import celery_config
from queueapi.celery_config import RUN_OPERATION, SPARK_QUEUE, TASKS_QUEUE, celery_settings
from queueapi.config import Config

TEN_S, QUARTER_S, HOUR_S = 10, 15 * 60, 60 * 60
# By the task: after how many seconds its next turn is, and the queue of the worker that takes it.
TURNS = {
    "workers.sample_offsets": (3, TASKS_QUEUE),
    "workers.run_pipeline": (7, SPARK_QUEUE),
    "workers.sweep_operations": (TEN_S, TASKS_QUEUE),
    "workers.publish_routing": (TEN_S, TASKS_QUEUE),
    "workers.keep_up_store": (HOUR_S, SPARK_QUEUE),
    "workers.record_storage": (QUARTER_S, TASKS_QUEUE),
    "workers.purge_summaries": (HOUR_S, TASKS_QUEUE),
    "workers.purge_letters": (HOUR_S, TASKS_QUEUE),
    "workers.purge_idempotency_keys": (HOUR_S, TASKS_QUEUE),
    "workers.evaluate_alerts": (17, TASKS_QUEUE),
    "workers.deliver_alerts": (TEN_S, TASKS_QUEUE),
    "workers.purge_alerts": (HOUR_S, TASKS_QUEUE),
}


@pytest.fixture
def app(tmp_path: Path) -> Celery:
    """With intervals that nothing else has."""
    found = Celery(set_as_current=False)
    found.conf.update(
        celery_settings(Config(data_dir=tmp_path, sample_interval_s=3, pipeline_interval_s=7, alert_interval_s=17))
    )
    return found


def queue_of(app: Celery, task: str) -> str:
    route: dict[str, Any] = app.amqp.router.route({}, task)
    return str(route["queue"].name)


def test_each_task_has_its_turn_and_its_worker(app) -> None:
    entries = app.conf.beat_schedule.values()
    assert {one["task"]: (one["schedule"], queue_of(app, one["task"])) for one in entries} == TURNS


def test_a_turn_that_nobody_took_is_gone_by_the_next(app) -> None:
    assert all(one["options"] == {"expires": one["schedule"]} for one in app.conf.beat_schedule.values())


def test_all_that_there_is_to_do_but_operations_has_a_turn() -> None:
    """An operation is done when somebody asks for it."""
    names = {value for value in vars(celery_config).values() if str(value).startswith("workers.")}
    assert names - TURNS.keys() == {RUN_OPERATION}
