"""Where messages go that the handlers of hosted queues send."""

import difflib
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from queueapi.models import Queue
from queuecore.errors import UnknownQueue
from queuecore.hashing import Entity, hash_function
from queuecore.topics import SYSTEM_TENANT, TopicPartitionInfo, check_topic

_NOTIFICATIONS: Final = re.compile(r"[^.]+(\.[^.]+)*\.notifications\.[^.]+(\.[^.]+)*")

_Known = Mapping[tuple[UUID, str], tuple[TopicPartitionInfo, ...]]


class QueueAddresses:
    """The queues there are, by name. Safe from any thread; what is asked meanwhile is answered by the last update."""

    def __init__(self, hash_name: str) -> None:
        self._hash = hash_function(hash_name)
        self._known: _Known = {}
        self._turns = itertools.count()

    def update(self, queues: Iterable[Queue]) -> None:
        """These are all."""
        self._known = {(queue.tenant_id, queue.name.lower()): tuple(queue.partition_infos()) for queue in queues}

    def seen_by(self, tenant_id: UUID) -> "TenantAddresses":
        return TenantAddresses(self, tenant_id)

    def resolve(self, tenant_id: UUID, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """As `TenantAddresses`."""
        known, name = self._known, queue.lower()
        infos = known.get((tenant_id, name)) or known.get((SYSTEM_TENANT, name))
        if infos is None:
            return self._notifications(known, tenant_id, queue)
        number = next(self._turns) if entity is None else abs(self._hash(entity))
        return infos[number % len(infos)]

    def _notifications(self, known: _Known, tenant_id: UUID, queue: str) -> TopicPartitionInfo:
        """The topic that one service instance reads alone, which is no queue."""
        if _NOTIFICATIONS.fullmatch(queue):
            return TopicPartitionInfo(check_topic(queue))
        names = sorted({name for owner, name in known if owner in (tenant_id, SYSTEM_TENANT)})
        close = difflib.get_close_matches(queue.lower(), names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
        raise UnknownQueue(f"there is no queue {queue!r}; {hint}", queue=queue)


class TenantAddresses:
    """The queues as one tenant sees them: its own, then the system's. A name such as `tb_core.notifications.core-1` is
    the topic of one service instance. Safe from any thread."""

    def __init__(self, addresses: QueueAddresses, tenant_id: UUID) -> None:
        self._addresses = addresses
        self._tenant_id = tenant_id

    def resolve(self, queue: str, entity: Entity | None) -> TopicPartitionInfo:
        """The partition of the entity's messages; without an entity, each in turn. UnknownQueue where there is none of
        that name, whatever its case."""
        return self._addresses.resolve(self._tenant_id, queue, entity)
