"""The sticky plan: every service gets its share of each pool to within one, and of all such plans one with the fewest
moves.

Why it is one with the fewest: pools have nothing to do with one another, and in a pool a service keeps at most what it
has and at most what it gets, so no plan with these counts keeps more than the sum of the smaller of the two. This one
keeps exactly that, and `quotas` chooses the counts for which that sum is largest. What has no owner, or one that may
not have it, counts alike in all plans.

What is left to choose, so that no move is added, is which partitions a service gives up and who gets which. There the
partitions of a queue are kept apart: a service that stands still should not take a whole queue with it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from queuecore.cluster.eligibility import Pool
from queuecore.cluster.quotas import quotas, rounding

# How many places ahead are looked at for a service that has less of a partition's queue.
_AHEAD: Final = 8


def assign_sticky(pools: Sequence[Pool], current: Mapping[str, str]) -> dict[str, str]:
    """Who gets each partition of these pools. `current` may name services and partitions that are gone."""
    holdings = [_Holdings(pool, current) for pool in pools]
    roundings = [rounding(pool.services, pool.size) for pool in pools]
    assignment: dict[str, str] = {}
    for holding, quota in zip(holdings, quotas(roundings, [holding.counts() for holding in holdings]), strict=True):
        holding.give_up(quota)
        holding.place(quota)
        assignment |= holding.assignment()
    return assignment


class _Holdings:
    """Who has what of a pool. Partitions are numbers here, those of a queue in a row: a pool may have very many."""

    def __init__(self, pool: Pool, current: Mapping[str, str]) -> None:
        self._names = [partition.name for queue in pool.queues for partition in queue]
        self._queue_of = [number for number, queue in enumerate(pool.queues) for _ in queue]
        self._sizes = [len(queue) for queue in pool.queues]
        self._held: dict[str, list[int]] = {service.service_id: [] for service in pool.services}
        self._homeless: list[int] = []
        for partition, name in enumerate(self._names):
            self._held.get(current.get(name, ""), self._homeless).append(partition)

    def counts(self) -> dict[str, int]:
        return {service: len(held) for service, held in self._held.items()}

    def assignment(self) -> dict[str, str]:
        owners = [""] * len(self._names)
        for service, held in self._held.items():
            for partition in held:
                owners[partition] = service
        return dict(zip(self._names, owners, strict=True))

    def give_up(self, quota: Mapping[str, int]) -> None:
        """Take from each what it has too much: of queues that it has most of for their size, then of those that others
        gave up least."""
        given_up: Counter[int] = Counter()
        for service, held in self._held.items():
            if (surplus := len(held) - quota[service]) <= 0:
                continue
            # Sorting once will do, though the counts go on: those of the same part are of as many queues.
            parts = self._parts(held)
            held.sort(key=lambda partition: (parts[partition], -given_up[self._queue_of[partition]]))
            leaving = held[-surplus:]
            del held[-surplus:]
            given_up.update(self._queue_of[partition] for partition in leaving)
            self._homeless += leaving

    def _parts(self, held: Iterable[int]) -> dict[int, float]:
        """For each, which part of its queue comes up to it: whoever keeps the same part of all keeps no queue whole."""
        seen: dict[int, int] = defaultdict(int)
        parts = {}
        for partition in held:
            queue = self._queue_of[partition]
            parts[partition] = (seen[queue] + 0.5) / self._sizes[queue]
            seen[queue] += 1
        return parts

    def place(self, quota: Mapping[str, int]) -> None:
        """Fill every service up to its quota. Queue by queue, each to a place with a service that has less of it."""
        places = _places({service: quota[service] - len(held) for service, held in self._held.items()})
        of_queue: dict[tuple[str, int], int] = defaultdict(int)
        for service in set(places):
            for partition in self._held[service]:
                of_queue[service, self._queue_of[partition]] += 1
        for at, partition in enumerate(sorted(self._homeless)):
            queue = self._queue_of[partition]
            if (places[at], queue) in of_queue:
                ahead = range(at, min(at + _AHEAD, len(places)))
                best = min(ahead, key=lambda place: of_queue.get((places[place], queue), 0))
                places[at], places[best] = places[best], places[at]
            of_queue[places[at], queue] += 1
            self._held[places[at]].append(partition)


def _places(free: Mapping[str, int]) -> list[str]:
    """Each service as often as it has places, and at even distances: neighbours are of different services."""
    places = [service for service, count in free.items() for _ in range(count)]
    order = [(number + 0.5) / count for count in free.values() for number in range(count)]
    return [places[at] for at in sorted(range(len(places)), key=order.__getitem__)]
