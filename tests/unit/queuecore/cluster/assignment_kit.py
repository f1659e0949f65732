"""Clusters to make plans for, and what a plan must keep to, said once more in the plainest way."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

from hypothesis import strategies as st

from queuecore.cluster.assignment import AssignmentPlan, plan
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.topics import SYSTEM_TENANT, ServiceType

CORE, ENGINE = ServiceType.TB_CORE, ServiceType.TB_RULE_ENGINE
TENANTS = tuple(UUID(int=number) for number in (1, 2, 3))
PROFILES = {SYSTEM_TENANT: "", TENANTS[0]: "gold", TENANTS[1]: "gold", TENANTS[2]: ""}
DEDICATIONS = (str(TENANTS[0]), "gold", str(TENANTS[2]))
WEIGHTS = (1.0, 1.0, 1.0, 2.0, 0.5, 0.1, 3.3, 1e-9)


@dataclass(frozen=True)
class Cluster:
    services: Sequence[ServiceInfo]
    partitions: Sequence[ClusterPartition]
    current: Mapping[str, str]

    def plan(self, assignor: str = "sticky") -> AssignmentPlan:
        return plan(assignor, self.services, self.partitions, self.current)


def plain_services(count: int, prefix: str = "s") -> list[ServiceInfo]:
    return [ServiceInfo(f"{prefix}{number}") for number in range(count)]


def queue(
    name: str, partitions: int, tenant: UUID = SYSTEM_TENANT, kind: ServiceType = ENGINE
) -> list[ClusterPartition]:
    return [
        ClusterPartition(f"{name}.{number}", kind, name, number, tenant, PROFILES.get(tenant, ""))
        for number in range(partitions)
    ]


def may_have(service: ServiceInfo, partition: ClusterPartition, services: Sequence[ServiceInfo]) -> bool:
    if partition.service_type not in service.service_types:
        return False
    if partition.label and partition.label not in service.labels:
        return False
    whose = set() if partition.tenant == SYSTEM_TENANT else {str(partition.tenant), partition.profile} - {""}
    of_type = [other for other in services if partition.service_type in other.service_types]
    if any(whose & other.dedicated_to for other in of_type):
        return bool(whose & service.dedicated_to)
    return not service.dedicated_to


def pools_of(cluster: Cluster) -> dict[tuple[str, ...], list[str]]:
    """Partitions by the ids of those that may have them; the empty key is nobody's."""
    pools: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for partition in cluster.partitions:
        able = (one.service_id for one in cluster.services if may_have(one, partition, cluster.services))
        pools[tuple(sorted(able))].append(partition.name)
    return pools


def shares_in(pool: Sequence[str], partitions: int, cluster: Cluster) -> dict[str, Fraction]:
    weights = {one.service_id: Fraction(one.weight) for one in cluster.services if one.service_id in pool}
    return {service: partitions * weight / sum(weights.values()) for service, weight in weights.items()}


services = st.builds(
    ServiceInfo,
    st.sampled_from([f"s{number}" for number in range(12)]),
    st.sampled_from([(CORE,), (ENGINE,), (CORE, ENGINE), tuple(ServiceType)]),
    st.sampled_from(WEIGHTS) | st.floats(min_value=0, max_value=1000, exclude_min=True),
    st.frozensets(st.sampled_from(["gpu", "ssd"])),
    st.just(frozenset()) | st.frozensets(st.sampled_from(DEDICATIONS)),
)


@st.composite
def partitions(draw: st.DrawFn) -> ClusterPartition:
    tenant = draw(st.sampled_from(list(PROFILES)))
    name, number = draw(st.sampled_from(["Main", "Slow"])), draw(st.integers(0, 15))
    kind, label = draw(st.sampled_from([CORE, ENGINE])), draw(st.sampled_from(["", "", "gpu"]))
    return ClusterPartition(f"{kind}.{name}.{tenant}.{number}", kind, name, number, tenant, PROFILES[tenant], label)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    alive = draw(st.lists(services, max_size=8, unique_by=lambda one: one.service_id))
    wanted = draw(st.lists(partitions(), max_size=40, unique_by=lambda one: one.name))
    owners = st.sampled_from([f"s{number}" for number in range(12)] + ["gone"])
    current = draw(st.dictionaries(st.sampled_from([one.name for one in wanted] + ["removed"]), owners))
    return Cluster(alive, wanted, current)


def random_cluster(chance: random.Random) -> Cluster:
    """A small one: two service types, labels, dedications, weights, owners that are gone and partitions without any."""
    alive = [_random_service(chance, f"s{number}") for number in range(chance.randint(1, 5))]
    wanted = [
        ClusterPartition(
            f"p{number}",
            chance.choice([CORE, ENGINE, ENGINE]),
            chance.choice(["Main", "Slow"]),
            number,
            tenant := chance.choice([SYSTEM_TENANT, SYSTEM_TENANT, *TENANTS]),
            PROFILES[tenant],
            chance.choice(["", "", "", "gpu"]),
        )
        for number in range(chance.randint(0, 12))
    ]
    # Few owners: many that have too much.
    owners = chance.choices([*(one.service_id for one in alive), "gone", ""], k=chance.randint(1, 4))
    owned = {one.name: chance.choice(owners) for one in wanted}
    return Cluster(alive, wanted, {name: owner for name, owner in owned.items() if owner})


def _random_service(chance: random.Random, service_id: str) -> ServiceInfo:
    return ServiceInfo(
        service_id,
        chance.choice([(ENGINE,), (CORE, ENGINE), (CORE, ENGINE)]),
        chance.choice(WEIGHTS),
        frozenset(chance.sample(["gpu", "ssd"], chance.randint(0, 2))),
        frozenset(chance.sample(DEDICATIONS, chance.choice([0, 0, 0, 1, 2]))),
    )
