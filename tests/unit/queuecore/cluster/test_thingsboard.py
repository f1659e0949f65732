"""ThingsBoard's placement, by the values and the properties of its own tests."""

from collections import Counter
from uuid import UUID, uuid1

import pytest

from queuecore.cluster.assignment import plan
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.cluster.thingsboard import server_index
from queuecore.topics import SYSTEM_TENANT, ServiceType
from tests.unit.queuecore.cluster.assignment_kit import plain_services

ONES = UUID("ffffffff-ffff-ffff-ffff-ffffffffffff")
DEVICE = UUID("784f394c-42b6-435a-983c-b7beff2784f9")


def queue(
    name: str, partitions: int, tenant: UUID = SYSTEM_TENANT, kind: ServiceType = ServiceType.TB_RULE_ENGINE
) -> list[ClusterPartition]:
    return [ClusterPartition(f"{name}.{tenant}.{n}", kind, name, n, tenant) for n in range(partitions)]


def owners(
    services: list[ServiceInfo], partitions: list[ClusterPartition], hash_name: str = "murmur3_128"
) -> list[str]:
    made = plan("thingsboard", services, partitions, {}, hash_name=hash_name)
    return [made.assignment[one.name] for one in partitions]


@pytest.mark.parametrize(
    ("tenant", "servers", "indexes"),
    [
        (SYSTEM_TENANT, 2, "1010101010"),
        (SYSTEM_TENANT, 3, "2012012012"),
        (SYSTEM_TENANT, 5, "3401234012"),
        (ONES, 2, "0101010101"),
        (ONES, 3, "2102102102"),
        (ONES, 5, "4321043210"),
        (DEVICE, 2, "0101010101"),
        (DEVICE, 3, "2102102102"),
        (DEVICE, 5, "3210432104"),
    ],
)
def test_a_rule_engines_partitions(tenant: UUID, servers: int, indexes: str) -> None:
    assert owners(plain_services(servers), queue("Main", 10, tenant)) == [f"s{index}" for index in indexes]


@pytest.mark.parametrize(
    ("tenant_hash", "indexes"),
    [(-2, [2, 1, 0, 1, 2]), (2**31 - 2, [0, 1, 2, 1])],
    ids=["across nought", "across the largest"],
)
def test_the_sum_wraps_and_its_sign_is_dropped(tenant_hash: int, indexes: list[int]) -> None:
    assert [server_index(tenant_hash, number, 3) for number in range(len(indexes))] == indexes


def test_another_hash_function() -> None:
    """-1198738292 for the system's tenant."""
    assert owners(plain_services(5), queue("Main", 4), "murmur3_32") == ["s2", "s1", "s0", "s4"]


def test_services_are_sorted_as_text() -> None:
    services = [ServiceInfo(name) for name in ("x-2", "x-10", "x-1")]
    assert owners(services, queue("core", 4, kind=ServiceType.TB_CORE)) == ["x-1", "x-10", "x-2", "x-1"]


def test_edqs_goes_over_the_sets_of_replicas_and_then_over_their_members() -> None:
    labels = {"c": "b", "a": "a", "d": "a", "b": "a"}
    services = [ServiceInfo(name, labels=frozenset({label})) for name, label in labels.items()]
    got = owners([*services, ServiceInfo("z")], queue("edqs", 12, kind=ServiceType.EDQS))
    assert got == ["z", "a", "c", "z", "b", "c", "z", "d", "c", "z", "a", "c"]


def test_edqs_puts_one_with_several_labels_in_the_set_of_the_first() -> None:
    services = [ServiceInfo("both", labels=frozenset({"b", "a"})), ServiceInfo("b", labels=frozenset({"b"}))]
    assert owners(services, queue("edqs", 3, kind=ServiceType.EDQS)) == ["both", "b", "both"]


def test_queues_of_a_tenant_have_the_same_services() -> None:
    services, tenant = plain_services(5), uuid1()
    assert len({tuple(owners(services, queue(f"queue-{n}", 10, tenant))) for n in range(100)}) == 1


def test_many_tenants_queues_are_spread() -> None:
    """1,000 tenants with 3 queues of 3 partitions on 5 servers: less than 10 % off."""
    tenants = [
        UUID(fields=(day * 1_000_003 % 2**32, day % 2**16, 0x1000 | day % 0xFFF, 0x80, 0x80, 1)) for day in range(1000)
    ]
    partitions = [one for tenant in tenants for name in ("Main", "Slow", "Fast") for one in queue(name, 3, tenant)]
    counts = Counter(owners(plain_services(5), partitions))
    ideal = len(partitions) / 5
    assert max(max(counts.values()) - ideal, ideal - min(counts.values())) / ideal < 0.10


def test_dedicated_services_have_their_profiles_tenants_and_nothing_else() -> None:
    """5 profiles of 100 tenants, 3 sets of 3 dedicated services, 3 common ones."""
    sets = {"x": ("p0", "p1"), "y": ("p2", "p3"), "z": ("p4",)}
    services = plain_services(3, "common-") + [
        ServiceInfo(f"{name}-{number}", dedicated_to=frozenset(profiles))
        for name, profiles in sets.items()
        for number in range(3)
    ]
    tenants = {UUID(int=100 * profile + number + 1): f"p{profile}" for profile in range(5) for number in range(100)}
    partitions = queue("Main", 10) + [
        ClusterPartition(f"{tenant}.{number}", number=number, tenant=tenant, profile=profile)
        for tenant, profile in tenants.items()
        for number in range(2)
    ]
    set_of = {profile: name for name, profiles in sets.items() for profile in profiles}
    for one, owner in zip(partitions, owners(services, partitions), strict=True):
        assert owner.rpartition("-")[0] == set_of.get(one.profile, "common")


def test_weights_and_owners_do_not_matter() -> None:
    partitions = queue("Main", 6)
    weighted = [ServiceInfo(one.service_id, weight=5.0 + at) for at, one in enumerate(plain_services(3))]
    current = {one.name: "s0" for one in partitions}
    made = plan("thingsboard", weighted, partitions, current)
    assert [made.assignment[one.name] for one in partitions] == owners(plain_services(3), partitions)
