"""Where an entity's messages go, by the latest routing version, and who consumes them there."""

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from queueapi.cluster.models import Partition
from queueapi.cluster.store import DatabaseStore
from queueapi.queue_addresses import NOTHING, QueueAddresses
from queueapi.selectors.rebalances import partitions
from queuecore.hashing import Entity
from queuecore.topics import SYSTEM_TENANT

_CANONICAL_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Of one entity's messages.

    tenant_id        whose queue it is: that of who sees it, or the system's
    topic            the queue's, without tenant and partition
    full_topic_name  what it is called at the provider
    hash             of the entity, by which the partition is chosen
    version          of the routing
    """

    tenant_id: UUID
    topic: str
    partition: int
    full_topic_name: str
    hash_function: str
    hash: int
    version: int


class Resolver:
    """Answers by the latest routing version there was when it was made. StoreUnavailable where that is unknown."""

    def __init__(self) -> None:
        table = DatabaseStore().routing() or NOTHING
        self._hash_name = table.hash_name
        self._addresses = QueueAddresses(table)

    def place(self, tenant_id: UUID, queue: str, entity: Entity) -> Place:
        """In the queue of that name as the tenant sees it. UnknownQueue suggests another."""
        info = self._addresses.resolve(tenant_id, queue, entity)
        return Place(
            tenant_id=info.tenant_id or SYSTEM_TENANT,
            topic=info.topic,
            partition=info.partition or 0,
            full_topic_name=info.full_topic_name,
            hash_function=self._hash_name,
            hash=self._addresses.hash(entity),
            version=self._addresses.version,
        )


def consumer_of(place: Place) -> Partition | None:
    """Who has its partition and under which epoch; None where the cluster knows of no such partition."""
    return partitions().filter(name=place.full_topic_name).first()


def read_entity(text: str) -> Entity:
    """A UUID is hashed as one, anything else as text. ValueError where it is none that could be stored."""
    if _CANONICAL_UUID.fullmatch(text):
        return UUID(text)
    text.encode()
    return text
