"""A consumer host as a service instance of its cluster."""

import logging
import os
import socket
import time
from collections.abc import Iterable
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import connections

from queueapi.choices import CONSUMED_QUEUE_STATES
from queueapi.cluster.store import DatabaseStore
from queueapi.config import config
from queueapi.models import Queue
from queueapi.models.queue import PARTITION_FIELDS
from queuecore.cluster.agent import AgentListener, ClusterAgent
from queuecore.cluster.coordinator import Coordinator
from queuecore.cluster.services import ClusterPartition
from queuecore.errors import ConfigurationError
from queuecore.topics import ServiceType

logger = logging.getLogger(__name__)

# How soon a new queue's partitions are known to the coordinator.
_READ_EVERY_S: Final = 1.0


def open_agent(service_id: str, listener: AgentListener) -> ClusterAgent:
    """Not started."""
    settings = config()
    options = settings.cluster.options(settings.queue.partitions.hash_function_name)
    store = DatabaseStore()
    return ClusterAgent(
        store,
        settings.service.info(service_id),
        listener,
        host=socket.gethostname(),
        pid=os.getpid(),
        options=options,
        coordinator=Coordinator(store, KnownPartitions().read, options),
    )


class KnownPartitions:
    """Which partitions there are, by the rows of queues. For the coordinator's thread."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] | None = None
        self._known: list[ClusterPartition] | None = None
        self._read_at = float("-inf")

    def read(self) -> list[ClusterPartition] | None:
        """None while that was never known. What is known is good enough while the database is away."""
        if (now := time.monotonic()) >= self._read_at:
            self._read_at = now + _READ_EVERY_S
            try:
                consumed = Queue.objects.filter(state__in=CONSUMED_QUEUE_STATES).order_by("id")
                rows = list(consumed.values_list(*_FIELDS, *_PROFILE_FIELDS))
            except DatabaseError:
                connections["default"].close()
            else:
                # Seldom anything is new, and thousands of queues have a hundred times as many partitions.
                if rows != self._rows:
                    self._rows, self._known = rows, _partitions(rows)
        return self._known


_FIELDS: Final = ("topic", *PARTITION_FIELDS, "tenant_id", "service_type", "name", "label")
# Of its tenant's profile, where the queue is not the system's.
_PROFILE_FIELDS: Final = ("tenant__profile_id", "tenant__profile__label")


def _partitions(rows: Iterable[tuple[Any, ...]]) -> list[ClusterPartition]:
    """What there is to consume. A row that cannot be understood is not the other queues' trouble."""
    found: list[ClusterPartition] = []
    for *row, profile, label in rows:
        queue = Queue(**dict(zip(_FIELDS, row, strict=True)))
        try:
            kind = ServiceType.of(queue.service_type)
        except ConfigurationError as error:
            logger.error("queue %s is not consumed, its messages wait: %s", queue.name, error.message)
            continue
        asked = ("", queue.label) if queue.only_tenant_id is None else (str(profile), queue.label or label)
        found += (
            ClusterPartition(str(queue.partition_info(number)), kind, queue.name, number, queue.tenant_id, *asked)
            for number in queue.consumed_numbers
        )
    return found
