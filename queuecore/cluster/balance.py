"""How evenly partitions are spread over services."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from queuecore.cluster.eligibility import Pool
from queuecore.cluster.services import ServiceInfo


@dataclass(frozen=True, slots=True)
class Load:
    """How many partitions a service has, and its share: by weight, of those that it may have."""

    count: int
    share: float


@dataclass(frozen=True, slots=True)
class Balance:
    """Each service's load by its id, and how many partitions the one furthest from its share is away from it."""

    services: dict[str, Load]
    largest_deviation: float


def shares_of(services: Iterable[ServiceInfo], pools: Sequence[Pool]) -> dict[str, float]:
    """Over all pools, by service id; 0 for a service that may have nothing."""
    shares: dict[str, float] = defaultdict(float)
    for pool in pools:
        size, total = pool.size, sum(service.weight for service in pool.services)
        for service in pool.services:
            shares[service.service_id] += size * (service.weight / total)
    return {service: shares[service] for service in sorted(service.service_id for service in services)}


def balance_of(shares: Mapping[str, float], owners: Iterable[str | None]) -> Balance:
    """`owners` are those of all partitions, None where there is none; one that has no share is not counted."""
    counts = Counter(owners)
    loads = {service: Load(counts[service], share) for service, share in shares.items()}
    return Balance(loads, max((abs(load.count - load.share) for load in loads.values()), default=0.0))
