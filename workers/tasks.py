"""Celery tasks: each wakes something up, none carries truth."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from queueapi import runtime
from queueapi.actions.alert_evaluation import evaluate_rules
from queueapi.actions.alerts import purge_alerts
from queueapi.actions.idempotency import keys_kept_since, purge_keys
from queueapi.actions.letter_retention import purge_letters
from queueapi.actions.operations import wake_stale_operations
from queueapi.actions.storage import record_storage
from queueapi.actions.summary_retention import purge_summaries
from queueapi.celery_config import (
    DELIVER_ALERTS,
    EVALUATE_ALERTS,
    PUBLISH_ROUTING,
    PURGE_ALERTS,
    PURGE_KEYS,
    PURGE_LETTERS,
    PURGE_SUMMARIES,
    RECORD_STORAGE,
    RUN_OPERATION,
    SAMPLE_OFFSETS,
    SWEEP_OPERATIONS,
)
from queueapi.config import config
from queueapi.identity import service_id
from queueapi.routing import tell_producers
from workers.alerts import deliver_alerts
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


@shared_task(name=EVALUATE_ALERTS)
def evaluate_alerts_task() -> None:
    evaluate_rules(timezone.now())


@shared_task(name=DELIVER_ALERTS)
def deliver_alerts_task() -> None:
    deliver_alerts()


@shared_task(name=PURGE_ALERTS)
def purge_alerts_task() -> None:
    purge_alerts(timezone.now() - timedelta(days=config().alert_retention_days))


@shared_task(name=RECORD_STORAGE)
def record_storage_task() -> None:
    record_storage(runtime.provider().admin(), timezone.now().date())


@shared_task(name=PURGE_SUMMARIES)
def purge_summaries_task() -> None:
    purge_summaries(config(), timezone.now())
