"""Celery tasks: each wakes something up, none carries truth."""

from uuid import UUID

from celery import shared_task

from queueapi import runtime
from queueapi.actions.operations import wake_stale_operations
from queueapi.celery_config import RUN_OPERATION, SAMPLE_OFFSETS, SWEEP_OPERATIONS
from queueapi.identity import service_id
from workers.operations.runner import run_operation
from workers.sampling import publish_samples


@shared_task(name=RUN_OPERATION)
def run_operation_task(operation_id: str) -> None:
    run_operation(UUID(operation_id))


@shared_task(name=SWEEP_OPERATIONS)
def sweep_operations_task() -> None:
    wake_stale_operations()


@shared_task(name=SAMPLE_OFFSETS)
def sample_offsets_task() -> None:
    publish_samples(runtime.provider(), service_id())
