"""Hosting consumers: one thread per partition, kept in step with the configuration in the database."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from django.db import close_old_connections, connections

from queueapi import runtime
from queueapi.actions.processes import leave, renew_lease
from queueapi.models import Queue
from queuecore.consuming.handlers import find_handler
from queuecore.consuming.loop import ConsumedPartition, PartitionLoop
from queuecore.errors import QueueError, UnknownHandler
from queuecore.processing import RetryFailed
from queuecore.topics import ServiceType
from workers import handlers
from workers.letters import LetterIndexer
from workers.outcomes import LetterOutcomes

logger = logging.getLogger(__name__)

RECONCILE_S = 2.0
STOP_TIMEOUT_S = 20.0
FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 30.0


class Loop(Protocol):
    def run(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(slots=True)
class Hosted:
    """A loop on its thread. An error that may pass is waited out; any other is its host's death."""

    name: str
    loop: Loop
    on_death: Callable[[str], None]
    thread: threading.Thread
    stopping: threading.Event

    @classmethod
    def begin(cls, name: str, loop: Loop, on_death: Callable[[str], None]) -> "Hosted":
        hosted = cls(name, loop, on_death, threading.Thread(name=name, daemon=True), threading.Event())
        hosted.thread = threading.Thread(target=hosted.run, name=name, daemon=True)
        hosted.thread.start()
        return hosted

    def run(self) -> None:
        backoff = FIRST_BACKOFF_S
        while not self.stopping.is_set():
            try:
                self.loop.run()
                return
            except QueueError as error:
                if not error.retryable:
                    self.on_death(f"{self.name}: {error}")
                    return
                logger.warning("%s stands still and tries again in %g s: %s", self.name, backoff, error)
                self.stopping.wait(backoff)
                backoff = min(LONGEST_BACKOFF_S, backoff * 2)
            except Exception as error:
                logger.exception("%s failed", self.name)
                self.on_death(f"{self.name}: {error}")
                return
            finally:
                connections.close_all()

    def stop(self) -> None:
        self.stopping.set()
        self.loop.stop()


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
        everything = [*self._consumers.values(), *self._indexers.values()]
        for hosted in everything:
            hosted.stop()
        for hosted in everything:
            hosted.thread.join(STOP_TIMEOUT_S)
        leave(self._service_id)
        runtime.close_provider()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                close_old_connections()
                self._reconcile(list(Queue.objects.select_related("tenant")))
                renew_lease(self._service_id, socket.gethostname(), os.getpid(), len(self._consumers))
                self._stopping.wait(RECONCILE_S)
        except Exception as error:
            logger.exception("the consumer host failed")
            self._on_death(f"consumer host: {error}")
        finally:
            connections.close_all()

    def _reconcile(self, queues: list[Queue]) -> None:
        """Stop what the configuration no longer wants as it is, start what it wants and is not there."""
        wanted = {spec for queue in queues if self._has_handler(queue) for spec in consumed_partitions(queue)}
        for spec in self._consumers.keys() - wanted:
            hosted = self._consumers.pop(spec)
            hosted.stop()
            hosted.thread.join(STOP_TIMEOUT_S)
        for spec in wanted - self._consumers.keys():
            self._consumers[spec] = self._consume(spec)
        for queue in queues:
            if str(queue.id) not in self._indexers:
                indexer = LetterIndexer(queue.partition_infos(), runtime.provider())
                self._indexers[str(queue.id)] = Hosted.begin(f"letters of {queue.name}", indexer, self._on_death)

    def _consume(self, spec: ConsumedPartition) -> Hosted:
        loop = PartitionLoop(spec, runtime.provider(), find_handler(spec.handler), LetterOutcomes())
        return Hosted.begin(f"{spec.queue}[{spec.info.partition}]", loop, self._on_death)

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
