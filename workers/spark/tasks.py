"""The pipeline as a Celery task. Every worker imports this for the task's name; only one that runs it loads Spark."""

import logging

from celery import shared_task

from queueapi.celery_config import RUN_PIPELINE
from workers.spark.errors import SparkError

logger = logging.getLogger(__name__)


@shared_task(name=RUN_PIPELINE, ignore_result=True)
def run_pipeline_task() -> None:
    from workers.spark.pipeline import run_pipeline

    try:
        summary = run_pipeline()
    except SparkError as error:
        logger.error("pipeline: %s; pages show the last run's summaries until one succeeds", error)
    else:
        logger.info("pipeline: %s", summary)
