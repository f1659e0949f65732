"""What a new installation needs before its first process starts. Repeatable."""

import logging
from collections.abc import Callable
from functools import partial

from django.core.management import call_command

from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import create_queue, provision_metrics, provision_queue
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.actions.users import ensure_administrator
from queueapi.models import Queue
from queuecore.errors import CorruptLog

logger = logging.getLogger(__name__)

ADMINISTRATOR = "admin"


def bootstrap(password: str) -> None:
    """Migrate the database, create the system's queue, its topics, and the first administrator."""
    call_command("migrate", verbosity=0, interactive=False)
    system = ensure_system_tenant()
    if not Queue.objects.filter(tenant=system, name="Main").exists():
        create_queue(SYSTEM, system, name="Main", topic="tb_rule_engine", handler="log")
    steps: list[Callable[[], None]] = [partial(provision_queue, queue) for queue in Queue.objects.all()]
    for step in (provision_metrics, *steps):
        try:
            step()
        except CorruptLog as error:
            logger.error("%s; the rest starts without it", error)
    ensure_administrator(ADMINISTRATOR, password)
