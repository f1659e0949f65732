"""Where an entity's messages go.

A `RoutingTable` is a value: all queues, the tenants that have their own, the hash function. Where anything goes changes
only when a newer version of it is given to a `Router`, which answers for whatever version it was given last.
"""

import itertools
import logging
import struct
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

import mmh3

from queuecore.errors import ConfigurationError, UnknownQueue, UnknownTenant
from queuecore.hashing import DEFAULT_HASH, Entity, hash_function
from queuecore.topics import (
    MAIN_QUEUE,
    SYSTEM_TENANT,
    ServiceType,
    TopicPartitionInfo,
    check_base_topic,
    check_no_clash,
    check_partitions,
)

logger = logging.getLogger(__name__)

# Of names that no queue has, as many are remembered: whoever invents them by the million fills no memory.
MAX_SUBSTITUTES: Final = 10_000
MAX_KNOWN: Final = 100_000

_SYSTEM: Final = SYSTEM_TENANT.int
# What `hashing.murmur3_128` is made of.
_LOW_LONG: Final = 2**64 - 1
_two_longs = struct.Struct("<QQ").pack
_digest_as_longs = mmh3.mmh3_x64_128_utupledigest


class QueueKey(NamedTuple):
    """Which queue is meant: names are unique within a service type and a tenant."""

    service_type: ServiceType
    queue: str = MAIN_QUEUE
    tenant: UUID = SYSTEM_TENANT

    def __str__(self) -> str:
        tenant = "system" if self.tenant == SYSTEM_TENANT else self.tenant
        return f"QK({self.queue},{self.service_type},{tenant})"


@dataclass(frozen=True, slots=True)
class RoutedQueue:
    """A queue as far as sending goes. `topic` has its prefix. Its partitions are numbered from `first_partition` on: a
    queue that got another number of them has new ones, and no number that ever meant another."""

    topic: str
    partitions: int
    duplicate_to_all_partitions: bool = False
    use_internal_partition: bool = False
    first_partition: int = 0

    def __post_init__(self) -> None:
        check_base_topic(self.topic)
        check_partitions(self.topic, self.partitions)
        if self.first_partition < 0:
            raise ConfigurationError(
                f"topic {self.topic!r}: there is no partition {self.first_partition}; count from 0"
            )

    @property
    def numbers(self) -> range:
        """Of its partitions."""
        return range(self.first_partition, self.first_partition + self.partitions)


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """One version of where everything goes. `isolated` tenants have rule-engine queues of their own; every other one of
    `tenants` shares the system's. Without `tenants`, whoever asks is taken for one."""

    version: int
    queues: Mapping[QueueKey, RoutedQueue]
    isolated: frozenset[UUID] = frozenset()
    tenants: frozenset[UUID] | None = None
    hash_name: str = DEFAULT_HASH

    def __post_init__(self) -> None:
        object.__setattr__(self, "queues", MappingProxyType(dict(self.queues)))
        hash_function(self.hash_name)
        takers: dict[tuple[str, UUID], QueueKey] = {}
        spellings: dict[QueueKey, QueueKey] = {}
        for key, queue in self.queues.items():
            if key.tenant != SYSTEM_TENANT and key.service_type != ServiceType.TB_RULE_ENGINE:
                raise ConfigurationError(f"queue {key} cannot be a tenant's own; only rule-engine queues can")
            other = takers.setdefault((queue.topic, key.tenant), key)
            if other != key:
                raise ConfigurationError(f"queues {other} and {key} both have the topic {queue.topic!r}; rename one")
            other = spellings.setdefault(key._replace(queue=key.queue.lower()), key)
            if other != key:  # groups are named in lower case
                raise ConfigurationError(f"queues {other} and {key} differ in case alone; rename one")
        check_no_clash(name for key, queue in self.queues.items() for name in _provider_topics(key, queue))


@dataclass(frozen=True, slots=True)
class _Route:
    """Where one queue's messages can go, and whose turn it is among messages that belong to nobody."""

    queue: RoutedQueue
    infos: tuple[TopicPartitionInfo, ...]
    count: int
    # Advancing it is one step of the interpreter: threads need no lock.
    turns: Iterator[int] = field(default_factory=itertools.count)


class _Routes:
    """Everything a router asks of one table. Only `known` and `found` grow: by who asked, and by what names that no
    queue has turn out to mean."""

    def __init__(self, table: RoutingTable, owned: Mapping[QueueKey, Collection[int]] | None) -> None:
        self.table = table
        self.hash = hash_function(table.hash_name)
        self.has_default_hash = table.hash_name == DEFAULT_HASH
        # Answers given before, so that the next message of the same tenant takes one look.
        self.known: dict[tuple[ServiceType, str | None, int], _Route] = {}
        self.by_key = {
            key: _Route(queue, _infos(key, queue, owned), queue.partitions) for key, queue in table.queues.items()
        }
        # Tenants are looked up by their numbers, which hash and compare in C, as UUIDs do not.
        self.homes = dict.fromkeys((tenant.int for tenant in table.tenants or ()), _SYSTEM)
        self.homes |= {tenant.int: tenant.int for tenant in table.isolated} | {_SYSTEM: _SYSTEM}
        self.home_of_strangers = _SYSTEM if table.tenants is None else None
        self.found: dict[tuple[ServiceType, str | None, int | None], _Route] = {
            (key.service_type, key.queue, key.tenant.int): route for key, route in self.by_key.items()
        }

    def candidates(self, service_type: ServiceType, queue: str, tenant: UUID) -> Iterator[QueueKey]:
        """The queues that will do, best first."""
        if service_type == ServiceType.TB_RULE_ENGINE and tenant in self.table.isolated:
            yield QueueKey(service_type, queue, tenant)
            yield QueueKey(service_type, MAIN_QUEUE, tenant)
        yield QueueKey(service_type, queue)
        yield QueueKey(service_type, MAIN_QUEUE)


class Router:
    """Answers which partition messages go to. Safe from any thread; nothing but `publish` and `own` takes a lock.

    Only rule-engine queues are ever a tenant's own. An isolated tenant's message goes to the tenant's queue of that
    name; if there is none, to the tenant's `Main`; if there is none either, to the system's queue of that name, and
    last to the system's `Main`. All others' go to the system's queue of that name, or else to its `Main`. That one
    queue is used for another is logged, once. No name means `Main`.

    UnknownTenant where the table lists the tenants and this is none of them; UnknownQueue where no queue will do.
    """

    def __init__(self, table: RoutingTable) -> None:
        self._changing = threading.Lock()
        self._owned: Mapping[QueueKey, Collection[int]] | None = None
        self._substitutes: set[tuple[QueueKey, QueueKey]] = set()
        self._routes = _Routes(table, None)

    @property
    def table(self) -> RoutingTable:
        return self._routes.table

    def publish(self, table: RoutingTable) -> bool:
        """Answer by this table from now on. False, and nothing changes, where one at least as new is known."""
        with self._changing:
            if table.version <= self._routes.table.version:
                return False
            self._routes = _Routes(table, self._owned)
            return True

    def own(self, partitions: Mapping[QueueKey, Collection[int]]) -> None:
        """Which partitions this process consumes: `my_partition` is true for these alone. Until told, for all."""
        with self._changing:
            self._owned = {key: frozenset(numbers) for key, numbers in partitions.items()}
            self._routes = _Routes(self._routes.table, self._owned)

    def resolve(
        self, service_type: ServiceType, queue: str | None, tenant: UUID, entity: Entity | None
    ) -> TopicPartitionInfo:
        """The partition of this entity's messages. Those that belong to no entity are spread evenly."""
        # Every message passes here: what it usually takes is spelt out, without a call.
        routes = self._routes
        try:
            route = routes.known[service_type, queue, tenant.int]
        except (KeyError, AttributeError):
            route = self._route(routes, service_type, queue, tenant)
        if type(entity) is UUID and routes.has_default_hash:
            raw = entity.int
            first = _digest_as_longs(_two_longs(raw >> 64, raw & _LOW_LONG))[0] & 0xFFFFFFFF
            return route.infos[(first if first < 0x80000000 else 0x100000000 - first) % route.count]
        number = next(route.turns) if entity is None else abs(routes.hash(entity))
        return route.infos[number % route.count]

    def resolve_all(
        self, service_type: ServiceType, queue: str | None, tenant: UUID, entity: Entity | None
    ) -> tuple[TopicPartitionInfo, ...]:
        """Every partition that a message of this entity goes to: the one of `resolve`; then, where a rule engine's
        queue duplicates its messages, all others in order, as partitions of somebody else."""
        routes = self._routes
        route = self._route(routes, service_type, queue, tenant)
        number = next(route.turns) if entity is None else abs(routes.hash(entity))
        first = route.infos[number % len(route.infos)]
        if service_type != ServiceType.TB_RULE_ENGINE or not route.queue.duplicate_to_all_partitions:
            return (first,)
        return first, *(replace(info, my_partition=False) for info in route.infos if info is not first)

    def get_partitions(
        self, service_type: ServiceType, queue: str | None, tenant: UUID
    ) -> tuple[TopicPartitionInfo, ...]:
        """All partitions of the queue that this tenant's messages go to, in order."""
        return self._route(self._routes, service_type, queue, tenant).infos

    def _route(self, routes: _Routes, service_type: ServiceType, queue: str | None, tenant: UUID) -> _Route:
        if not isinstance(tenant, UUID):
            raise UnknownTenant(f"tenant {tenant!r} is no UUID but {type(tenant).__name__}; give its UUID")
        home = routes.homes.get(tenant.int, routes.home_of_strangers)
        route = routes.found.get((service_type, queue, home)) or self._find(routes, service_type, queue, tenant)
        if len(routes.known) < MAX_KNOWN:
            routes.known[service_type, queue, tenant.int] = route
        return route

    def _find(self, routes: _Routes, service_type: ServiceType, queue: str | None, tenant: UUID) -> _Route:
        home = routes.homes.get(tenant.int, routes.home_of_strangers)
        if home is None:
            raise UnknownTenant(
                f"no tenant {tenant} is known in routing version {routes.table.version}; "
                "create it, or wait for the version that has it",
                tenant=str(tenant),
            )
        candidates = list(routes.candidates(service_type, queue or MAIN_QUEUE, tenant))
        for key in candidates:
            if route := routes.by_key.get(key):
                self._note_substitute(candidates[0], key)
                if len(routes.found) < len(routes.by_key) + MAX_SUBSTITUTES:
                    routes.found[service_type, queue, home] = route
                return route
        known = ", ".join(sorted(key.queue for key in routes.by_key if key.service_type == service_type)) or "none"
        raise UnknownQueue(
            f"there is neither a queue {candidates[0]} nor one to take its place; {service_type} has: {known}",
            service_type=str(service_type),
            queue=candidates[0].queue,
            tenant=str(tenant),
        )

    def _note_substitute(self, wanted: QueueKey, used: QueueKey) -> None:
        if wanted == used or (wanted, used) in self._substitutes or len(self._substitutes) >= MAX_SUBSTITUTES:
            return
        self._substitutes.add((wanted, used))
        logger.warning("there is no queue %s: its messages go to %s until it is created", wanted, used)


def _provider_topics(key: QueueKey, queue: RoutedQueue) -> Iterator[str]:
    name = TopicPartitionInfo(queue.topic, tenant_id=key.tenant).full_topic_name
    if queue.use_internal_partition:
        yield name
    else:
        yield from (f"{name}.{number}" for number in queue.numbers)


def _infos(
    key: QueueKey, queue: RoutedQueue, owned: Mapping[QueueKey, Collection[int]] | None
) -> tuple[TopicPartitionInfo, ...]:
    mine = queue.numbers if owned is None else owned.get(key, ())
    return tuple(
        TopicPartitionInfo(queue.topic, number, key.tenant, queue.use_internal_partition, number in mine)
        for number in queue.numbers
    )
