"""ThingsBoard's placement: a modulo over the services sorted by id. Weights, and who has what now, do not matter.

TB_RULE_ENGINE  by the tenant's hash and the partition's number: all queues of a tenant have partition n in one place
EDQS            services with the same label are a set of replicas, and the set is found by the partition's number
others          by the partition's number

ThingsBoard gives a partition of EDQS to all services of a set. A partition has one owner here: of the set's members
the one numbered `partition // number of sets`, modulo their number. A service with several labels is in the set of the
first of them, one without any in the set of no label.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from queuecore.cluster.eligibility import Pool
from queuecore.cluster.layout import Layout
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.hashing import DEFAULT_HASH, HashFunction, hash_function
from queuecore.topics import ServiceType

Find = Callable[[int], str]


def assign_thingsboard(pools: Sequence[Pool], layout: Layout, hash_name: str = DEFAULT_HASH) -> list[str | None]:
    """Who gets each partition of these pools, by place; None for all others. ConfigurationError for a hash function
    that does not exist."""
    function = hash_function(hash_name)
    owners: list[str | None] = [None] * len(layout.names)
    for pool in pools:
        for queue in pool.queues:
            find = _finder(pool.services, queue.like, function)
            owners[queue.begin : queue.end] = map(find, layout.numbers_of(queue))
    return owners


def server_index(tenant_hash: int, partition: int, servers: int) -> int:
    """Of a rule engine's partition. The sum wraps as Java's int does, and its sign is dropped."""
    wrapped = (tenant_hash + partition + 2**31) % 2**32 - 2**31
    return abs(wrapped) % servers


def _finder(services: Sequence[ServiceInfo], partition: ClusterPartition, function: HashFunction) -> Find:
    """Finds a partition's service by its number, for all of this one's queue."""
    servers = [service.service_id for service in services]
    match partition.service_type:
        case ServiceType.TB_RULE_ENGINE:
            tenant_hash = function(partition.tenant)
            return lambda number: servers[server_index(tenant_hash, number, len(servers))]
        case ServiceType.EDQS:
            return _replica_finder(services)
        case _:
            return lambda number: servers[number % len(servers)]


def _replica_finder(services: Sequence[ServiceInfo]) -> Find:
    sets: dict[str, list[str]] = defaultdict(list)
    for service in services:
        sets[min(service.labels, default="")].append(service.service_id)
    replicas = [sets[label] for label in sorted(sets)]

    def find(number: int) -> str:
        turn, index = divmod(number, len(replicas))
        return replicas[index][turn % len(replicas[index])]

    return find
