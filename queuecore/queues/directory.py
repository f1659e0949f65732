"""Which queues there are at a provider, and where their messages go.

There is no registry: a queue is what its topics say (see `layout`). Its dead-letter topic is created last, so a
creation that was cut short can simply be repeated.
"""

import difflib
import threading
from dataclasses import replace
from typing import Final

from queuecore.errors import QueueError, UnknownQueue
from queuecore.hashing import Entity
from queuecore.providers.base import DAY_MS, QueueAdmin, TopicSpec
from queuecore.queues.layout import check_possible, find_queue, letters_of, queue_names, topics_of
from queuecore.routing import QueueKey, RoutedQueue, Router, RoutingTable
from queuecore.topics import SYSTEM_TENANT, ServiceType, TopicPartitionInfo

# Letters wait for a person.
LETTER_RETENTION_MS: Final = 90 * DAY_MS

# A router wants a service type; here names alone tell queues apart.
_SERVICE: Final = ServiceType.TB_RULE_ENGINE


class QueueDirectory:
    """Safe from any thread. What it has once found it takes for granted: a queue does not change its partitions."""

    def __init__(self, admin: QueueAdmin, hash_name: str) -> None:
        self._admin = admin
        self._router = Router(RoutingTable(0, {}, hash_name=hash_name))
        self._known: set[str] = set()
        self._changing = threading.Lock()

    def create(self, queue: RoutedQueue, spec: TopicSpec) -> None:
        """Create what is missing of the queue, with topics like `spec`. ConfigurationError and InvalidName before
        anything is created; once this returns, all of the queue is there."""
        check_possible(queue, self._admin.topics())
        self._admin.create_topics(
            [replace(spec, name=topic, partitions=count) for topic, count in topics_of(queue).items()]
        )
        # Somebody may have created it in the meantime, and otherwise. The letters' topic makes the queue: it is last.
        check_possible(queue, self._admin.topics())
        self._admin.create_topics([TopicSpec(letters_of(queue), queue.partitions, retention_ms=LETTER_RETENTION_MS)])
        self._check_complete(queue)

    def names(self) -> list[str]:
        return queue_names(self._admin.topics())

    def partitions(self, queue: str) -> tuple[TopicPartitionInfo, ...]:
        """All of the queue's, in order. UnknownQueue where there is none of that name."""
        if queue not in self._known:
            self._learn(queue)
        return self._router.get_partitions(_SERVICE, queue, SYSTEM_TENANT)

    def resolve(self, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """The partition of the entity's messages; without an entity, each in turn. UnknownQueue as above."""
        # Asked first: a router would take another queue for one that it does not know.
        if queue not in self._known:
            self._learn(queue)
        return self._router.resolve(_SERVICE, queue, SYSTEM_TENANT, entity)

    def _check_complete(self, queue: RoutedQueue) -> None:
        topics = self._admin.topics()
        check_possible(queue, topics)
        if find_queue(queue.topic, topics) is None:
            raise QueueError(f"queue {queue.topic!r} was created, but not all of it is there; create it again")

    def _learn(self, queue: str) -> None:
        topics = self._admin.topics()
        if (found := find_queue(queue, topics)) is None:
            raise _unknown(queue, queue_names(topics))
        with self._changing:
            if queue in self._known:
                # Another thread was faster; a new table would begin anew with whose turn it is.
                return
            table = self._router.table
            queues = {**table.queues, QueueKey(_SERVICE, queue): found}
            self._router.publish(replace(table, version=table.version + 1, queues=queues))
            self._known.add(queue)


def _unknown(queue: str, names: list[str]) -> UnknownQueue:
    close = difflib.get_close_matches(queue, names, n=1)
    known = ", ".join(sorted(names)) or "none"
    hint = f"did you mean {close[0]!r}?" if close else f"create it first; there are: {known}"
    return UnknownQueue(f"there is no queue {queue!r}; {hint}", queue=queue)
