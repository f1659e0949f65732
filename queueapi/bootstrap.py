"""What a new installation needs before its first process starts. Repeatable."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.management import call_command

from queueapi.actions.actor import SYSTEM
from queueapi.actions.provisioning import provision_metrics, provision_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.actions.users import ensure_administrator
from queueapi.choices import STANDING_QUEUE_STATES
from queueapi.config import config
from queueapi.models import Queue
from queueapi.routing import tell_producers
from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import CorruptLog
from queuecore.topics import MAIN_QUEUE

logger = logging.getLogger(__name__)

ADMINISTRATOR = "admin"


def bootstrap(password: str) -> None:
    """Migrate the database, create the system's queue, its topics, and the first administrator."""
    call_command("migrate", verbosity=0, interactive=False)
    system = ensure_system_tenant()
    if not Queue.objects.filter(tenant=system, name=MAIN_QUEUE).exists():
        create_queue(SYSTEM, system, name=MAIN_QUEUE, handler="log", **_main_options(config().queue))
    there = Queue.objects.filter(state__in=STANDING_QUEUE_STATES)
    steps: list[Callable[[], None]] = [partial(provision_queue, queue) for queue in there]
    for step in (provision_metrics, *steps):
        try:
            step()
        except CorruptLog as error:
            logger.error("%s; the rest starts without it", error)
    # Of an installation from before there were routing versions.
    tell_producers()
    ensure_administrator(ADMINISTRATOR, password)


def _main_options(tree: QueueSettings) -> dict[str, Any]:
    """How the rule engine's queue begins. Later it is changed like any other."""
    settings = tree.rule_engine
    has_copies = tree.type == "kafka" and settings.replication_factor != tree.kafka.replication_factor
    return {
        "replication_factor": settings.replication_factor if has_copies else None,
        "topic": settings.topic,
        "partitions": settings.partitions,
        "pack_processing_timeout_ms": settings.pack_processing_timeout_ms,
        "submit_strategy": settings.submit_strategy.type,
        "batch_size": settings.submit_strategy.batch_size,
        "processing_strategy": settings.processing_strategy.type,
        "retries": settings.max_retries,
        "dlq_enabled": settings.dlq.enabled,
        "dlq_topic": settings.dlq.topic,
    }
