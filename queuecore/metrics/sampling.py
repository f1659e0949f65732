"""Which entities' messages are most, found out by looking at a part of them."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from uuid import UUID

from queuecore.messages import TENANT_ID, Record
from queuecore.metrics.heavy_hitters import HeavyHitters
from queuecore.metrics.shares import MOST_TENANT_BYTES
from queuecore.proto.events_pb2 import EntityShare

# So many of an interval's messages are all looked at. Of those after them ever fewer are, one in as many as have come
# for each of these: what it costs grows with the logarithm, and what is told is off by a few percent of all.
ALL_OF_FIRST: Final = 200
# What comes in more than one message of 128 is found.
KEPT: Final = 128
TOLD: Final = 10
# Keys may be as large as messages; such are not kept.
MOST_KEY_BYTES: Final = 256

# The key's bytes, and whether it is an id.
Entity = tuple[bytes, bool]


class EntitySample:
    """One interval's. For one thread at a time."""

    __slots__ = ("_chance", "_hitters", "_seen", "_tenants")

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._hitters: HeavyHitters[Entity] = HeavyHitters(KEPT)
        # Of those that were looked at: whom their first message named.
        self._tenants: dict[Entity, bytes] = {}
        self._seen = 0

    def add(self, records: Sequence[Record]) -> None:
        """Each is looked at with the same chance, wherever it stands, and by steps that no turn keeps to: what comes in
        turn cannot hide."""
        least = max(1, self._seen // ALL_OF_FIRST)
        step = least + int(self._chance() * least)
        self._seen += len(records)
        for record in records[int(self._chance() * step) :: step]:
            if (entity := _entity_of(record)) is not None:
                self._hitters.add(entity, step)
                if entity not in self._tenants:
                    self._remember(entity, record)

    def told(self) -> Iterator[EntityShare]:
        for entity, messages in self._hitters.top(TOLD):
            tenant_id = self._tenants[entity].decode(errors="replace")
            yield EntityShare(key=entity[0], is_uuid=entity[1], tenant_id=tenant_id, messages=messages)

    def _remember(self, entity: Entity, record: Record) -> None:
        self._tenants[entity] = record.headers.get(TENANT_ID, b"")[:MOST_TENANT_BYTES]
        if len(self._tenants) > 4 * KEPT:
            self._tenants = {one: tenant for one, tenant in self._tenants.items() if one in self._hitters}


def _entity_of(record: Record) -> Entity | None:
    key = record.key
    if isinstance(key, UUID):
        return key.bytes, True
    return None if key is None or len(key) > MOST_KEY_BYTES else (key, False)
