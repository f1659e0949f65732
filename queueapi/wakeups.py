"""Waking workers: tasks sent by name, after the transaction that gave the reason has been committed."""

import logging
from functools import cache
from typing import Any
from uuid import UUID

from celery import Celery
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from queueapi.celery_config import DELIVER_ALERTS, RUN_OPERATION, SPARK_QUEUE, TASKS_QUEUE
from queueapi.selectors.pipeline import BACKFILL

logger = logging.getLogger(__name__)

_BY_SPARK = frozenset((BACKFILL,))


@cache
def _sender() -> Any:
    app = Celery("switchyard-sender", set_as_current=False)
    app.conf.update(settings.CELERY)
    return app


def wake_operation(operation_id: UUID, kind: str = "") -> None:
    """Ask a worker to run the operation once this transaction is committed: the one with Spark for a kind that needs
    it.

    A wake-up that cannot be sent is no failure of the change: the sweeper sends another.
    """
    queue = SPARK_QUEUE if kind in _BY_SPARK else TASKS_QUEUE
    transaction.on_commit(lambda: _send(RUN_OPERATION, str(operation_id), queue=queue))


def wake_deliveries() -> None:
    """Ask a worker to tell people of alerts, as `wake_operation`."""
    transaction.on_commit(lambda: _send(DELIVER_ALERTS))


def _send(task: str, *args: str, queue: str = TASKS_QUEUE) -> None:
    try:
        _sender().send_task(task, args=args, queue=queue, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("could not send %s%s (%s); the sweeper will send it again", task, args, error)
