"""Which queues there are at a provider, and where their messages go.

There is no registry: a queue is what its topics say. Its dead-letter topic is created last and has as many partitions
as the queue, so a queue exists once that topic does, and a creation that was cut short can simply be repeated.
"""

import difflib
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from queuecore.errors import ConfigurationError, UnknownQueue
from queuecore.hashing import Entity
from queuecore.providers.base import DAY_MS, QueueAdmin, TopicSpec
from queuecore.routing import QueueKey, RoutedQueue, Router, RoutingTable
from queuecore.topics import (
    SYSTEM_TENANT,
    ServiceType,
    TopicPartitionInfo,
    check_no_clash,
    dead_letter_partition,
)

# Letters wait for a person.
LETTER_RETENTION_MS: Final = 90 * DAY_MS

_LETTERS: Final = ".dlq"
# A router wants a service type; here names alone tell queues apart.
_SERVICE: Final = ServiceType.TB_RULE_ENGINE


class QueueDirectory:
    """Safe from any thread. What it has once found it takes for granted: a queue does not change its partitions."""

    def __init__(self, admin: QueueAdmin, hash_name: str) -> None:
        self._admin = admin
        self._router = Router(RoutingTable(0, {}, hash_name=hash_name))
        self._known: set[str] = set()
        self._changing = threading.Lock()

    def create(self, name: str, queue: RoutedQueue, spec: TopicSpec) -> None:
        """Create what is missing of the queue, with topics like `spec`."""
        for other in self._check_same(name, queue):
            check_no_clash([name, other])
        infos = [
            TopicPartitionInfo(name, number, use_internal_partition=queue.use_internal_partition)
            for number in range(queue.partitions)
        ]
        inside = queue.partitions if queue.use_internal_partition else 1
        self._admin.create_topics(
            [replace(spec, name=topic, partitions=inside) for topic in dict.fromkeys(one.place.topic for one in infos)]
        )
        letters = dead_letter_partition(infos[0]).full_topic_name
        self._admin.create_topics([TopicSpec(letters, queue.partitions, retention_ms=LETTER_RETENTION_MS)])
        # Somebody may have created it in the meantime, and otherwise.
        self._check_same(name, queue)

    def names(self) -> list[str]:
        return sorted(_names(self._admin.topics()))

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

    def _check_same(self, name: str, wanted: RoutedQueue) -> list[str]:
        """The names of all queues. ConfigurationError where this one is there and is not as wanted."""
        topics = self._admin.topics()
        names = _names(topics)
        if name in names:
            _refuse_another(name, wanted, _as_created(name, topics))
        return names

    def _learn(self, queue: str) -> None:
        topics = self._admin.topics()
        if queue not in (names := _names(topics)):
            raise _unknown(queue, names)
        found = _as_created(queue, topics)
        with self._changing:
            table = self._router.table
            queues = {**table.queues, QueueKey(_SERVICE, queue): found}
            self._router.publish(replace(table, version=table.version + 1, queues=queues))
            self._known.add(queue)


def _names(topics: Mapping[str, TopicSpec]) -> list[str]:
    return [name.removesuffix(_LETTERS) for name in topics if name.endswith(_LETTERS)]


def _as_created(name: str, topics: Mapping[str, TopicSpec]) -> RoutedQueue:
    return RoutedQueue(name, topics[f"{name}{_LETTERS}"].partitions, use_internal_partition=name in topics)


def _refuse_another(name: str, wanted: RoutedQueue, there: RoutedQueue) -> None:
    if wanted.use_internal_partition != there.use_internal_partition:
        how = "inside one topic" if there.use_internal_partition else "in topics of their own"
        raise ConfigurationError(f"queue {name!r} is there already with its partitions {how}; ask for the same")
    if wanted.partitions != there.partitions:
        raise ConfigurationError(
            f"queue {name!r} is there already with {there.partitions} partitions, not {wanted.partitions}; another "
            f"number would send entities elsewhere and lose their order. Ask for {there.partitions}, or use a new name"
        )


def _unknown(queue: str, names: list[str]) -> UnknownQueue:
    close = difflib.get_close_matches(queue, names, n=1)
    known = ", ".join(sorted(names)) or "none"
    hint = f"did you mean {close[0]!r}?" if close else f"create it first; there are: {known}"
    return UnknownQueue(f"there is no queue {queue!r}; {hint}", queue=queue)
