"""A cluster in the database without a process behind it: instances, partitions, and a coordinator that steps when told
to."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from queueapi.cluster.models import Rebalance
from queueapi.cluster.store import DatabaseStore
from queuecore.cluster.coordinator import Coordinator
from queuecore.cluster.options import ClusterOptions
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.cluster.store import Member
from queuecore.testing.clock import ManualClock
from queuecore.topics import SYSTEM_TENANT, ServiceType

LEASE_S = 60.0


def partitions_named(
    queue: str, topic: str, count: int, tenant: UUID = SYSTEM_TENANT, label: str = ""
) -> list[ClusterPartition]:
    return [
        ClusterPartition(f"{topic}.{number}", ServiceType.TB_RULE_ENGINE, queue, number, tenant, label=label)
        for number in range(count)
    ]


@dataclass
class FakeCluster:
    """The first that joins coordinates. Nothing is released or taken before `settle`."""

    partitions: Sequence[ClusterPartition]
    store: DatabaseStore = field(default_factory=DatabaseStore)
    clock: ManualClock = field(default_factory=lambda: ManualClock(round(time.time() * 1000)))
    members: dict[str, Member] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = ClusterOptions(debounce_s=0, coordinator_lease_s=LEASE_S)
        self._coordinator = Coordinator(self.store, lambda: self.partitions, options, self.clock)

    def join(self, *ids: str, **options) -> None:
        for service_id in ids:
            service = ServiceInfo(service_id, **options)
            self.members[service_id] = self.store.join(service, host="machine-1", pid=7, lease_s=LEASE_S)

    def step(self) -> None:
        self.clock.advance(0.01)
        self._coordinator.step(next(iter(self.members.values())))

    def settle(self) -> None:
        """Plan what is to be planned, and have all of it done."""
        self.step()
        self.move()
        self.step()

    def move(self) -> None:
        """Everybody releases and takes what it should."""
        for member in self.members.values():
            holdings = self.store.holdings(member)
            self.store.release(member, dict.fromkeys(holdings.leaving, 0.25))
        for member in self.members.values():
            self.store.take(member)

    def owners(self) -> dict[str, str | None]:
        return {name: one.owner for name, one in self.store.view().owners.items()}

    def counts(self) -> dict[str, int]:
        owners = list(self.owners().values())
        return {name: owners.count(name) for name in self.members}


def newest_rebalance() -> Rebalance:
    return Rebalance.objects.order_by("-created_at", "-id")[0]
