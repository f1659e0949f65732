"""Celery tasks: each wakes something up, none carries truth."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from queueapi import runtime
from queueapi.actions.idempotency import keys_kept_since, purge_keys
from queueapi.actions.letter_retention import purge_letters
from queueapi.actions.operations import wake_stale_operations
from queueapi.celery_config import (
    PUBLISH_ROUTING,
    PURGE_KEYS,
    PURGE_LETTERS,
    RUN_OPERATION,
    SAMPLE_OFFSETS,
    SWEEP_OPERATIONS,
)
from queueapi.config import config
from queueapi.identity import service_id
from queueapi.routing import tell_producers
from workers.operations.runner import run_operation
from workers.sampling import publish_samples


@shared_task(name=RUN_OPERATION)
def run_operation_task(operation_id: str) -> None:
    run_operation(UUID(operation_id))


@shared_task(name=SWEEP_OPERATIONS)
def sweep_operations_task() -> None:
    wake_stale_operations()


@shared_task(name=PUBLISH_ROUTING)
def publish_routing_task() -> None:
    """Mends what whoever created a queue had no time for."""
    tell_producers()


@shared_task(name=SAMPLE_OFFSETS)
def sample_offsets_task() -> None:
    publish_samples(runtime.provider(), service_id())


@shared_task(name=PURGE_LETTERS)
def purge_letters_task() -> None:
    purge_letters(timezone.now() - timedelta(days=config().letter_retention_days))


@shared_task(name=PURGE_KEYS)
def purge_keys_task() -> None:
    purge_keys(keys_kept_since())
