"""What is set about an instance, and about the cluster that it is of."""

from dataclasses import dataclass
from typing import Literal

from queuecore.cluster.assignment import Assignor
from queuecore.cluster.options import ClusterOptions
from queuecore.cluster.services import ALL_SERVICE_TYPES, ServiceInfo
from queuecore.config import setting
from queuecore.topics import ServiceType


def _types(raw: str) -> tuple[ServiceType, ...]:
    return tuple(ServiceType.of(part.strip()) for part in raw.split(",") if part.strip()) or ALL_SERVICE_TYPES


def _weight(raw: str) -> float:
    try:
        return float(raw)
    except ValueError:
        raise ValueError("is not a number") from None


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How this machine's consumer host announces itself."""

    id: str = setting("", "The id of this service instance. Empty: the host's name and a process id.")
    types: tuple[ServiceType, ...] = setting(
        ALL_SERVICE_TYPES,
        "Of which service types it is: it consumes their queues. Empty: of all.",
        parse=_types,
        kind="comma-separated list",
    )
    weight: float = setting(
        1.0, "How much it takes beside others: twice the weight, twice the partitions.", parse=_weight, kind="number"
    )
    labels: tuple[str, ...] = setting((), "What it has that queues may ask for with `label`.")
    dedicated_to: tuple[str, ...] = setting(
        (), "Tenants, or tenant profiles, whose queues alone it consumes, by their ids; nobody else consumes those."
    )

    def info(self, service_id: str) -> ServiceInfo:
        """As an instance of this id announces itself. ConfigurationError, InvalidName where it cannot."""
        labels, dedicated_to = frozenset(self.labels), frozenset(self.dedicated_to)
        return ServiceInfo(service_id, self.types, self.weight, labels, dedicated_to)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The same for all instances."""

    lease_ms: int = setting(
        15_000,
        "Milliseconds of silence after which a service instance is declared dead, and others get its partitions.",
        minimum=500,
    )
    coordinator_lease_ms: int = setting(
        5_000, "Milliseconds of silence after which another instance coordinates.", minimum=500
    )
    rebalance_delay_ms: int = setting(
        300, "Milliseconds in which no instance came or went before partitions are assigned anew.", minimum=0
    )
    rebalance_timeout_ms: int = setting(
        60_000, "Milliseconds that partitions may take to change hands before that is planned once more.", minimum=1
    )
    assignor: Literal["sticky", "thingsboard"] = setting(
        "sticky", "Who gets which partition: with the fewest moves, or by ThingsBoard's modulo for mixed clusters."
    )

    def options(self, hash_name: str) -> ClusterOptions:
        shorter_s = min(self.lease_ms, self.coordinator_lease_ms) / 1000
        return ClusterOptions(
            lease_s=self.lease_ms / 1000,
            coordinator_lease_s=self.coordinator_lease_ms / 1000,
            look_every_s=min(0.2, shorter_s / 10),
            debounce_s=self.rebalance_delay_ms / 1000,
            rebalance_timeout_s=self.rebalance_timeout_ms / 1000,
            assignor=Assignor(self.assignor),
            hash_name=hash_name,
        )
