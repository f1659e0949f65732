"""What a cluster is made of: service instances, and partitions to be consumed by them."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from queuecore.errors import ConfigurationError, UnknownService
from queuecore.topics import SYSTEM_TENANT, ServiceType, member_topic

ALL_SERVICE_TYPES: Final = tuple(ServiceType)
MAX_WEIGHT: Final = 1000.0
_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A service instance, as it announces itself.

    service_id     no other running instance has it; a restarted one keeps it, and with it its partitions
    service_types  of which it is; the first is its main one
    weight         how much it takes beside others: twice the weight, twice the partitions
    labels         what it has that a queue may ask for
    dedicated_to   tenants, or profiles of tenants, whose partitions alone it takes; empty: everybody's who has none
    """

    service_id: str
    service_types: tuple[ServiceType, ...] = ALL_SERVICE_TYPES
    weight: float = 1.0
    labels: frozenset[str] = frozenset()
    dedicated_to: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        # Its notification topic ends with it.
        member_topic("notifications", self.service_id)
        if not self.service_types:
            raise ConfigurationError(f"service {self.service_id} is of no service type; name at least one")
        if not 0 < self.weight <= MAX_WEIGHT:
            raise ConfigurationError(
                f"service {self.service_id} has the weight {self.weight:g}; use more than 0 and at most {MAX_WEIGHT:g}"
            )


@dataclass(frozen=True, slots=True)
class ClusterPartition:
    """A partition that one service instance is to consume.

    name     its place at the provider, unique in the cluster
    queue    its queue's name
    number   which of the queue's partitions it is
    tenant   whose queue it is
    profile  of that tenant
    label    what a service must have to consume it; empty: nothing
    """

    name: str
    service_type: ServiceType = ServiceType.TB_RULE_ENGINE
    queue: str = ""
    number: int = 0
    tenant: UUID = SYSTEM_TENANT
    profile: str = ""
    label: str = ""

    @property
    def dedications(self) -> frozenset[str]:
        """What a service that is dedicated to its tenant says: the system's queues are nobody's."""
        if self.tenant == SYSTEM_TENANT:
            return frozenset()
        return frozenset(filter(None, (str(self.tenant), self.profile)))


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that changes hands. `source` may be gone."""

    partition: str
    source: str
    target: str


def by_id(services: Iterable[ServiceInfo]) -> dict[str, ServiceInfo]:
    """ConfigurationError where two have the same id."""
    found: dict[str, ServiceInfo] = {}
    for service in services:
        if service.service_id in found:
            raise ConfigurationError(f"two services are called {service.service_id!r}; each needs an id of its own")
        found[service.service_id] = service
    return found


def unknown_service(service_id: str, known: Iterable[str]) -> UnknownService:
    """What to raise for the id of an instance that is not there."""
    ids = sorted(known)
    close = difflib.get_close_matches(service_id, ids)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are: {named_services(ids)}."
    return UnknownService(
        f"there is no service {service_id!r} in the cluster; {hint} Start it, or look up again who is there",
        service_id=service_id,
    )


def named_services(ids: Iterable[str]) -> str:
    """The first of them, and how many more there are."""
    names = sorted(ids)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED]) or 'none'}{more}"
