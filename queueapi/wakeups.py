"""Waking workers: tasks sent by name, after the transaction that gave the reason has been committed."""

import logging
from functools import cache
from typing import Any
from uuid import UUID

from celery import Celery
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from queueapi.celery_config import RUN_OPERATION

logger = logging.getLogger(__name__)


@cache
def _sender() -> Any:
    app = Celery("switchyard-sender", set_as_current=False)
    app.conf.update(settings.CELERY)
    return app


def wake_operation(operation_id: UUID) -> None:
    """Ask a worker to run the operation once this transaction is committed.

    A wake-up that cannot be sent is no failure of the change: the sweeper sends another.
    """
    transaction.on_commit(lambda: _send(RUN_OPERATION, str(operation_id)))


def _send(task: str, *args: str) -> None:
    try:
        _sender().send_task(task, args=args, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("could not send %s%s (%s); the sweeper will send it again", task, args, error)
