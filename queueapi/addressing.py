"""Where this process sends messages: by the latest routing version."""

import atexit
import difflib
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from queueapi import runtime
from queueapi.cluster.store import DatabaseStore
from queueapi.identity import service_id
from queuecore.cluster.routing_feed import RoutingFeed
from queuecore.errors import UnknownQueue
from queuecore.hashing import Entity, hash_function
from queuecore.routing import QueueKey, RoutedQueue, RoutingTable
from queuecore.topics import SYSTEM_TENANT, TopicPartitionInfo, check_topic

_NOTIFICATIONS: Final = re.compile(r"[^.]+(\.[^.]+)*\.notifications\.[^.]+(\.[^.]+)*")
NOTHING: Final = RoutingTable(0, {})

Partitions = tuple[TopicPartitionInfo, ...]


class _Known:
    """One table's queues, by name. Only what is asked for is made: of thousands of queues few are sent to."""

    def __init__(self, table: RoutingTable) -> None:
        self.version = table.version
        self.hash = hash_function(table.hash_name)
        self._queues = {(key.tenant.int, key.queue.lower()): (key, queue) for key, queue in table.queues.items()}
        self._made: dict[tuple[int, str], Partitions] = {}

    def find(self, owners: Iterable[UUID], name: str) -> Partitions | None:
        """Those of the first of these tenants' queue of that name, whatever its case."""
        lower = name.lower()
        for owner in owners:
            place = (owner.int, lower)
            if made := self._made.get(place):
                return made
            if found := self._queues.get(place):
                made = self._made[place] = _infos(*found)
                return made
        return None

    def names(self, owners: Iterable[UUID]) -> list[str]:
        seen = {owner.int for owner in owners}
        return sorted({name for owner, name in self._queues if owner in seen})


class QueueAddresses:
    """The queues there are, by name, as one table has them after the other. Safe from any thread; what is asked
    meanwhile is answered by the last one. `renew` fetches a newer one, for names that are in none yet."""

    def __init__(self, table: RoutingTable = NOTHING, renew: Callable[[], None] = lambda: None) -> None:
        self._known = _Known(table)
        self._renew = renew
        self._turns = itertools.count()

    def use(self, table: RoutingTable) -> None:
        """Answer by this one from now on."""
        self._known = _Known(table)

    @property
    def version(self) -> int:
        return self._known.version

    def seen_by(self, tenant_id: UUID) -> "TenantAddresses":
        return TenantAddresses(self, tenant_id)

    def resolve(self, tenant_id: UUID, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """As `TenantAddresses`."""
        owners = (tenant_id, SYSTEM_TENANT)
        if _is_notifications(queue) and self._known.find(owners, queue) is None:
            # The topic that one service instance reads alone, which is no queue.
            return TopicPartitionInfo(check_topic(queue))
        return self._resolve(owners, queue, entity)

    def resolve_exactly(self, tenant_id: UUID, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """The partition in that tenant's own queue, whatever else it sees. UnknownQueue, StoreUnavailable."""
        return self._resolve((tenant_id,), queue, entity)

    def partitions(self, tenant_id: UUID, queue: str) -> Partitions:
        """All of that tenant's own queue, in order. UnknownQueue, StoreUnavailable."""
        return self._find((tenant_id,), queue)[1]

    def hash(self, entity: Entity) -> int:
        """By which partitions are chosen."""
        return self._known.hash(entity)

    def _resolve(self, owners: tuple[UUID, ...], queue: str, entity: Entity | None) -> TopicPartitionInfo:
        known, infos = self._find(owners, queue)
        number = next(self._turns) if entity is None else abs(known.hash(entity))
        return infos[number % len(infos)]

    def _find(self, owners: tuple[UUID, ...], queue: str) -> tuple[_Known, Partitions]:
        known = self._known
        if (infos := known.find(owners, queue)) is None:
            self._renew()
            known = self._known
            if (infos := known.find(owners, queue)) is None:
                raise _unknown(queue, known.names(owners))
        return known, infos


class TenantAddresses:
    """The queues as one tenant sees them: its own, then the system's. A name such as `tb_core.notifications.core-1` is
    the topic of one service instance. Safe from any thread."""

    def __init__(self, addresses: QueueAddresses, tenant_id: UUID) -> None:
        self._addresses = addresses
        self._tenant_id = tenant_id

    def resolve(self, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """The partition of the entity's messages; without an entity, each in turn. UnknownQueue where there is none of
        that name, whatever its case. StoreUnavailable where that cannot be known now."""
        return self._addresses.resolve(self._tenant_id, queue, entity)


def addresses() -> QueueAddresses:
    """Those of this process, which is a producer from the first time that it asks. Whoever needs them before the
    cluster's store was ever there waits for some seconds: StoreUnavailable."""
    global _open
    if (opened := _open) is None:
        with _lock:
            if (opened := _open) is None:
                opened = _open = _follow()
    return opened[1]


def close_addresses() -> None:
    """Be no producer any more, at the end of a process or of a test."""
    global _open
    with _lock:
        opened, _open = _open, None
    if opened is not None:
        opened[0].stop()


def _follow() -> tuple[RoutingFeed, QueueAddresses]:
    def renew() -> None:
        feed.wait_ready()
        feed.refresh()

    followed = QueueAddresses(renew=renew)
    feed = RoutingFeed(DatabaseStore(), service_id(), followed.use)
    feed.start()
    return feed, followed


def _forget_parent() -> None:
    """A process that was forked has nothing: its parent's thread is not its own."""
    global _open, _lock
    _open, _lock = None, threading.Lock()


_lock = threading.Lock()
_open: tuple[RoutingFeed, QueueAddresses] | None = None
os.register_at_fork(after_in_child=_forget_parent)
atexit.register(close_addresses)
# Who sends nothing any more is no producer.
runtime.before_close(close_addresses)


def _is_notifications(name: str) -> bool:
    # Every message passes here: the expression is for what it may fit.
    return ".notifications." in name and _NOTIFICATIONS.fullmatch(name) is not None


def _infos(key: QueueKey, queue: RoutedQueue) -> Partitions:
    numbers = range(queue.partitions)
    return tuple(TopicPartitionInfo(queue.topic, one, key.tenant, queue.use_internal_partition) for one in numbers)


def _unknown(queue: str, names: list[str]) -> UnknownQueue:
    close = difflib.get_close_matches(queue.lower(), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
    return UnknownQueue(f"there is no queue {queue!r}; {hint}", queue=queue)
