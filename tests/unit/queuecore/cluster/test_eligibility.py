"""Which services may have a partition, and what is said where none may."""

from uuid import UUID

import pytest

from queuecore.cluster.assignment import ASSIGNORS, Assignor, plan
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.topics import SYSTEM_TENANT, ServiceType

TENANT, OTHER = UUID(int=1), UUID(int=2)
CORE, ENGINE = ServiceType.TB_CORE, ServiceType.TB_RULE_ENGINE
COMMON = ServiceInfo("common")


def dedicated(service_id: str, *to: str, labels: frozenset[str] = frozenset()) -> ServiceInfo:
    return ServiceInfo(service_id, dedicated_to=frozenset(to), labels=labels)


def of(tenant: UUID, profile: str = "", label: str = "", kind: ServiceType = ENGINE) -> ClusterPartition:
    return ClusterPartition("p", kind, "Main", 0, tenant, profile, label)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize(
    ("services", "partition", "owner"),
    [
        ([ServiceInfo("core", (CORE,)), ServiceInfo("engine", (ENGINE,))], of(SYSTEM_TENANT), "engine"),
        ([COMMON, ServiceInfo("gpu", labels=frozenset({"gpu"}))], of(TENANT, label="gpu"), "gpu"),
        ([COMMON, dedicated("d", str(TENANT))], of(TENANT), "d"),
        ([COMMON, dedicated("d", "gold")], of(TENANT, "gold"), "d"),
        ([COMMON, dedicated("d", str(TENANT))], of(OTHER), "common"),
        ([COMMON, dedicated("d", str(SYSTEM_TENANT))], of(SYSTEM_TENANT), "common"),
        ([COMMON, dedicated("d", "gold")], of(SYSTEM_TENANT, "gold"), "common"),
        ([COMMON, ServiceInfo("d", (CORE,), dedicated_to=frozenset({str(TENANT)}))], of(TENANT), "common"),
    ],
    ids=[
        *("service type", "label", "tenant", "profile", "another tenant", "the system", "the system's profile"),
        "dedicated in another service type",
    ],
)
def test_who_gets_it(assignor: Assignor, services: list[ServiceInfo], partition: ClusterPartition, owner: str) -> None:
    assert plan(assignor, services, [partition], {}).assignment == {"p": owner}


@pytest.mark.parametrize(
    ("services", "partition", "reason"),
    [
        ([], of(TENANT), "there is no service"),
        ([ServiceInfo("core", (CORE,))], of(TENANT, kind=ServiceType.EDQS), "no service of type EDQS"),
        ([COMMON], of(TENANT, label="gpu"), "no service of type TB_RULE_ENGINE has the label 'gpu'"),
        (
            [ServiceInfo("gpu", labels=frozenset({"gpu"})), dedicated("d", "gold")],
            of(TENANT, "gold", "gpu"),
            "no service dedicated to gold has the label 'gpu'",
        ),
        (
            [dedicated("d", "gold")],
            of(TENANT),
            f"no service is dedicated to {TENANT}, and all of type TB_RULE_ENGINE are dedicated to others",
        ),
        (
            [dedicated("d", "gold")],
            of(SYSTEM_TENANT),
            "all services of type TB_RULE_ENGINE are dedicated to tenants, and the system's queues are nobody's",
        ),
    ],
)
def test_why_nobody_gets_it(services: list[ServiceInfo], partition: ClusterPartition, reason: str) -> None:
    made = plan("sticky", services, [partition], {"p": "common"})
    assert made.unassigned == {"p": reason}
    assert (made.assignment, made.moves) == ({}, ())


def test_what_the_same_services_may_have_is_divided_together() -> None:
    """Whether by service type or by label: four partitions, two services, two each."""
    services = [ServiceInfo(name, labels=frozenset({"x"})) for name in "ab"]
    partitions = [
        ClusterPartition("1", CORE),
        ClusterPartition("2", ENGINE),
        ClusterPartition("3", ENGINE, label="x"),
        ClusterPartition("4", ENGINE, tenant=TENANT),
    ]
    made = plan("sticky", services, partitions, dict.fromkeys("1234", "a"))
    assert len(made.moves) == 2
