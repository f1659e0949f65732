"""Hosting consumers: one thread per partition, kept in step with the configuration in the database."""

import logging
import os
import socket
import threading
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.db import close_old_connections, connections

from queueapi import runtime
from queueapi.actions.processes import leave, renew_lease
from queueapi.models import Queue
from queuecore.consuming.handlers import find_handler
from queuecore.consuming.loop import ConsumedPartition, PartitionLoop
from queuecore.errors import UnknownHandler
from queuecore.processing import RetryFailed
from queuecore.topics import ServiceType
from workers import handlers
from workers.hosted import Hosted
from workers.letters import LetterIndexer
from workers.outcomes import LetterOutcomes

logger = logging.getLogger(__name__)

RECONCILE_S = 2.0
STOP_TIMEOUT_S = 20.0


class ConsumerHost:
    """Consumes every partition of every queue, and enters their dead letters into the index."""

    def __init__(self, service_id: str, on_death: Callable[[str], None]) -> None:
        self._service_id = service_id
        self._on_death = on_death
        self._stopping = threading.Event()
        self._consumers: dict[ConsumedPartition, Hosted] = {}
        self._indexers: dict[str, Hosted] = {}
        self._refused: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="consumer-host", daemon=True)

    def start(self) -> None:
        handlers.register_all()
        self._thread.start()

    def stop(self) -> None:
        """Stop all loops at once, then wait for each: the slowest one's message decides how long it takes."""
        self._stopping.set()
        self._thread.join(STOP_TIMEOUT_S)
        for hosted in self._everything():
            hosted.stop()
        for hosted in self._everything():
            hosted.join(STOP_TIMEOUT_S)
        try:
            leave(self._service_id)
        except DatabaseError as error:
            logger.warning("could not take leave, the lease will run out by itself: %s", error)
        runtime.close_provider()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._look()
                self._stopping.wait(RECONCILE_S)
        except Exception as error:
            logger.exception("the consumer host failed")
            self._on_death(f"consumer host: {error}")
        finally:
            connections.close_all()

    def _look(self) -> None:
        """One round. A database that is away is waited for; what is consumed goes on meanwhile."""
        try:
            close_old_connections()
            self._reconcile(list(Queue.objects.select_related("tenant")))
            renew_lease(self._service_id, socket.gethostname(), os.getpid(), len(self._consumers))
        except DatabaseError as error:
            logger.warning("cannot read the configuration, the consumers go on as they are: %s", error)
            connections.close_all()
        if dead := [hosted.name for hosted in self._everything() if hosted.is_dead]:
            self._on_death(f"the thread of {dead[0]} is gone")
            self._stopping.set()

    def _everything(self) -> list[Hosted]:
        return [*self._consumers.values(), *self._indexers.values()]

    def _reconcile(self, queues: list[Queue]) -> None:
        """Stop what the configuration no longer wants as it is, start what it wants and is not there."""
        wanted = {spec for queue in queues if self._has_handler(queue) for spec in consumed_partitions(queue)}
        for spec in self._consumers.keys() - wanted:
            hosted = self._consumers.pop(spec)
            hosted.stop()
            hosted.join(STOP_TIMEOUT_S)
        for spec in wanted - self._consumers.keys():
            loop = PartitionLoop(spec, runtime.provider(), find_handler(spec.handler), LetterOutcomes())
            self._consumers[spec] = Hosted(f"{spec.queue}[{spec.info.partition}]", loop)
        for queue in queues:
            if str(queue.id) not in self._indexers:
                indexer = LetterIndexer(queue.partition_infos(), runtime.provider())
                self._indexers[str(queue.id)] = Hosted(f"letters of {queue.name}", indexer)

    def _has_handler(self, queue: Queue) -> bool:
        try:
            find_handler(queue.handler)
        except UnknownHandler as error:
            if queue.handler not in self._refused:
                logger.error("queue %s is not consumed, its messages wait: %s", queue.name, error)
                self._refused.add(queue.handler)
            return False
        return True


def consumed_partitions(queue: Queue) -> list[ConsumedPartition]:
    retry = RetryFailed(queue.retries, queue.retry_pause_ms, queue.max_retry_pause_ms)
    return [
        ConsumedPartition(
            queue_id=str(queue.id),
            queue=queue.name,
            service_type=ServiceType(queue.service_type),
            info=info,
            handler=queue.handler,
            poll_interval_ms=queue.poll_interval_ms,
            retry=retry,
        )
        for info in queue.partition_infos()
    ]
