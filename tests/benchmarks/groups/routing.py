"""Finding an entity's partition."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from uuid import UUID

import mmh3

from queuecore.routing import QueueKey, RoutedQueue, Router, RoutingTable
from queuecore.topics import MAIN_QUEUE, ServiceType, TopicPartitionInfo
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.workload import rate

PARTITIONS = 10

_ENTITIES = 500_000
_TENANTS = 1_000
_random = random.Random(1)

# Each with its tenant.
Entities = Sequence[tuple[UUID, UUID]]


@contextmanager
def benchmarks(_folder: Path) -> Iterator[Sequence[Benchmark]]:
    tenants = [_uuid() for _ in range(_TENANTS)]
    entities = [(tenants[number % _TENANTS], _uuid()) for number in range(_ENTITIES)]
    router = Router(_table(tenants))
    if [info.partition for info in _resolve(router, entities)] != _inline(entities):
        raise AssertionError("resolve() and the formula do not agree")
    yield [
        Benchmark(
            subject=Measurement("resolve() of a UUID", lambda _: rate(_ENTITIES, lambda: _resolve(router, entities))),
            peers=(Peer("the formula inline", lambda _: rate(_ENTITIES, lambda: _inline(entities)), 0.5),),
            unit="UUIDs/s",
            goal=1_000_000,
        )
    ]


def _resolve(router: Router, entities: Entities) -> list[TopicPartitionInfo]:
    resolve, rule_engine = router.resolve, ServiceType.TB_RULE_ENGINE
    return [resolve(rule_engine, MAIN_QUEUE, tenant, entity) for tenant, entity in entities]


def _inline(entities: Entities) -> list[int]:
    """Only where the entity goes in a queue that is known already."""
    two_longs, digest = Struct("<QQ").pack, mmh3.mmh3_x64_128_utupledigest
    partitions = []
    for _tenant, entity in entities:
        number = entity.int
        first = digest(two_longs(number >> 64, number & 0xFFFFFFFFFFFFFFFF))[0] & 0xFFFFFFFF
        partitions.append((first if first < 0x80000000 else 0x100000000 - first) % PARTITIONS)
    return partitions


def _table(tenants: Sequence[UUID]) -> RoutingTable:
    """The usual one: a few queues that all tenants share, and a tenant in a hundred that has its own."""
    isolated, rule_engine = frozenset(tenants[::100]), ServiceType.TB_RULE_ENGINE
    shared = {QueueKey(service): RoutedQueue(service.lower(), PARTITIONS) for service in ServiceType}
    own = {QueueKey(rule_engine, MAIN_QUEUE, tenant): RoutedQueue("main", PARTITIONS) for tenant in isolated}
    return RoutingTable(1, shared | own, isolated, frozenset(tenants))


def _uuid() -> UUID:
    return UUID(int=_random.getrandbits(128), version=4)
