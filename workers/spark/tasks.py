"""The pipeline as Celery tasks. Every worker imports this for the tasks' names; only one that runs them loads Spark."""

import logging
import time

from celery import shared_task
from django.utils import timezone

from queueapi.actions.pipeline import record_pipeline_failure, record_pipeline_success
from queueapi.celery_config import KEEP_UP_STORE, RUN_PIPELINE
from queuecore.errors import QueueError
from workers.spark.errors import PipelineBusy

logger = logging.getLogger(__name__)


@shared_task(name=RUN_PIPELINE, ignore_result=True)
def run_pipeline_task() -> None:
    """Whatever comes of the run, the pipeline's standing tells it."""
    from workers.spark.pipeline import run_pipeline

    ran_at, started = timezone.now(), time.monotonic()
    try:
        summary = run_pipeline()
    except PipelineBusy as error:
        logger.info("pipeline: %s", error)
    except QueueError as error:
        # First, as it may be the database that is away.
        logger.error("pipeline: %s; pages show the last run's summaries until one succeeds", error)
        record_pipeline_failure(ran_at, time.monotonic() - started, error)
    else:
        record_pipeline_success(ran_at, summary.seconds, summary.backlog)
        logger.info("pipeline: %s", summary)


@shared_task(name=KEEP_UP_STORE, ignore_result=True)
def keep_up_store_task() -> None:
    from workers.spark.upkeep import keep_up_store

    try:
        logger.info("events: %s", keep_up_store())
    except PipelineBusy as error:
        logger.info("events: %s", error)
