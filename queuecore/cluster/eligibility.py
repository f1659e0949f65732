"""Which services may have a partition, and what follows: pools of partitions that the same services may have.

A service may have a partition when it

- is of the partition's service type,
- has its label, where it asks for one,
- and is dedicated to its tenant or to that tenant's profile, where any service of the type is; otherwise, and for the
  system's queues always, when it is dedicated to nobody.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from queuecore.cluster.layout import Layout, QueuePlaces
from queuecore.cluster.services import ClusterPartition, ServiceInfo, by_id
from queuecore.topics import ServiceType


class Want(NamedTuple):
    """What partitions ask of a service. `dedications` are those that some service has; empty: it is to have none."""

    service_type: ServiceType
    label: str
    dedications: frozenset[str]


@dataclass(slots=True)
class Pool:
    """Partitions that the same services may have, both in an order of their own: nothing depends on that of the input.

    services  by id, at least one
    queues    where the partitions are in a layout, in its order
    """

    services: tuple[ServiceInfo, ...]
    queues: list[QueuePlaces] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(queue.size for queue in self.queues)


class Eligibility:
    """Finds the services that may have a partition."""

    def __init__(self, services: Iterable[ServiceInfo]) -> None:
        """ConfigurationError where two have the same id."""
        self._of_type: dict[ServiceType, list[ServiceInfo]] = defaultdict(list)
        self._dedicated: dict[tuple[ServiceType, str], list[ServiceInfo]] = defaultdict(list)
        self._common: dict[ServiceType, list[ServiceInfo]] = defaultdict(list)
        for _, service in sorted(by_id(services).items()):
            for service_type in set(service.service_types):
                self._of_type[service_type].append(service)
                if not service.dedicated_to:
                    self._common[service_type].append(service)
                for dedication in service.dedicated_to:
                    self._dedicated[service_type, dedication].append(service)

    def want(self, partition: ClusterPartition) -> Want:
        kind = partition.service_type
        if not self._dedicated:
            return Want(kind, partition.label, frozenset())
        taken = (dedication for dedication in partition.dedications if (kind, dedication) in self._dedicated)
        return Want(kind, partition.label, frozenset(taken))

    def services(self, want: Want) -> tuple[ServiceInfo, ...]:
        """By id; empty where there is none."""
        found = self._common.get(want.service_type, [])
        if want.dedications:
            lists = (self._dedicated[want.service_type, dedication] for dedication in want.dedications)
            found = [
                service for _, service in sorted({each.service_id: each for some in lists for each in some}.items())
            ]
        return tuple(service for service in found if not want.label or want.label in service.labels)

    def reason(self, partition: ClusterPartition) -> str:
        """In words, why no service may have it."""
        want = self.want(partition)
        of_type = f"no service of type {want.service_type}"
        if not self._of_type.get(want.service_type):
            return of_type if self._of_type else "there is no service"
        if want.dedications:
            return f"no service dedicated to {_either(want.dedications)} has the label {want.label!r}"
        if self._common.get(want.service_type):
            return f"{of_type} has the label {want.label!r}"
        if partition.dedications:
            whose = _either(partition.dedications)
            return f"no service is dedicated to {whose}, and all of type {want.service_type} are dedicated to others"
        return (
            f"all services of type {want.service_type} are dedicated to tenants, and the system's queues are nobody's"
        )


def divide(services: Iterable[ServiceInfo], layout: Layout) -> tuple[list[Pool], dict[str, str]]:
    """The pools, smallest set of services first, and the reason for each partition that nobody may have.

    ConfigurationError where two services have the same id.
    """
    eligibility = Eligibility(services)
    wanted: dict[Want, Pool] = {}
    unassigned: dict[str, str] = {}
    for queue in layout.queues:
        want = eligibility.want(queue.like)
        if want not in wanted:
            wanted[want] = Pool(eligibility.services(want))
        if wanted[want].services:
            wanted[want].queues.append(queue)
        else:
            unassigned |= dict.fromkeys(layout.names_of(queue), eligibility.reason(queue.like))
    return _merged(pool for pool in wanted.values() if pool.services), unassigned


def _merged(pools: Iterable[Pool]) -> list[Pool]:
    """Those with the same services, for whatever reason, are one."""
    merged: dict[tuple[str, ...], Pool] = {}
    for pool in pools:
        ids = tuple(service.service_id for service in pool.services)
        merged.setdefault(ids, Pool(pool.services)).queues.extend(pool.queues)
    for pool in merged.values():
        pool.queues.sort(key=lambda queue: queue.begin)
    return [merged[ids] for ids in sorted(merged, key=lambda ids: (len(ids), ids))]


def _either(dedications: frozenset[str]) -> str:
    return " or ".join(sorted(dedications))
