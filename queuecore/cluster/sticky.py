"""The sticky plan: every service gets its share of each pool to within one, and of all such plans one with the fewest
moves.

Why it is one with the fewest: pools have nothing to do with one another, and in a pool a service keeps at most what it
has and at most what it gets, so no plan with these counts keeps more than the sum of the smaller of the two. This one
keeps exactly that, and `quotas` chooses the counts for which that sum is largest. What has no owner, or one that may
not have it, counts alike in all plans.

What is left to choose, so that no move is added, is which partitions a service gives up and who gets which. There the
partitions of a queue are kept apart: a service that stands still should not take a whole queue with it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from queuecore.cluster.eligibility import Pool
from queuecore.cluster.layout import Layout, QueuePlaces
from queuecore.cluster.quotas import quotas, rounding

# How many places ahead are looked at for a service that has less of a partition's queue.
_AHEAD: Final = 8


def assign_sticky(pools: Sequence[Pool], layout: Layout, holders: Sequence[str | None]) -> list[str | None]:
    """Who gets each partition of these pools, by place; None for all others. `holders` say who has each, and may name
    services that are gone."""
    owners: list[str | None] = [None] * len(layout.names)
    holdings = [_Holdings(pool, layout, holders, owners) for pool in pools]
    roundings = [rounding(pool.services, pool.size) for pool in pools]
    for holding, quota in zip(holdings, quotas(roundings, [holding.counts() for holding in holdings]), strict=True):
        holding.give_up(quota)
        holding.place(quota)
    return owners


class _Holdings:
    """Who has what of a pool. Partitions are their places here. `owners`, of all pools, is kept up to date."""

    def __init__(self, pool: Pool, layout: Layout, holders: Sequence[str | None], owners: list[str | None]) -> None:
        self._queues = layout.queues
        self._queue_of = layout.queue_of
        self._owners = owners
        self._held: dict[str, list[int]] = {service.service_id: [] for service in pool.services}
        self._homeless: list[int] = []
        held, homeless = self._held, self._homeless
        for queue in pool.queues:
            for partition in range(queue.begin, queue.end):
                holder = holders[partition]
                if holder in held:
                    held[holder].append(partition)
                    owners[partition] = holder
                else:
                    homeless.append(partition)

    def counts(self) -> dict[str, int]:
        return {service: len(held) for service, held in self._held.items()}

    def give_up(self, quota: Mapping[str, int]) -> None:
        """Take from each what it has too much: of queues that it has most of for their size, then of those that others
        gave up least."""
        given_up: Counter[int] = Counter()
        for service, held in self._held.items():
            if (surplus := len(held) - quota[service]) <= 0:
                continue
            # Sorting once will do, though the counts go on: those of the same part are of as many queues.
            ranked = sorted(self._ranked(held, given_up))
            for *_, partition in ranked[-surplus:]:
                given_up[self._queue_of[partition]] += 1
                self._owners[partition] = None
                self._homeless.append(partition)
            # From here on it matters only how many it has.
            del held[-surplus:]

    def _ranked(self, held: Iterable[int], given_up: Mapping[int, int]) -> Iterator[tuple[float, int, int]]:
        """Each with which part of its queue comes up to it, as whoever keeps the same part of all keeps no queue whole,
        and how many of its queue others gave up, fewest last."""
        seen: dict[int, int] = {}
        for partition in held:
            queue = self._queue_of[partition]
            place = self._queues[queue]
            before = seen.get(queue, 0)
            seen[queue] = before + 1
            yield (before + 0.5) / (place.end - place.begin), -given_up.get(queue, 0), partition

    def place(self, quota: Mapping[str, int]) -> None:
        """Fill every service up to its quota. Queue by queue, each to a place with a service that has less of it."""
        places = _places({service: quota[service] - len(held) for service, held in self._held.items()})
        counted, counts = -1, Counter[str | None]()
        for at, partition in enumerate(sorted(self._homeless)):
            if (queue := self._queue_of[partition]) != counted:
                counted, counts = queue, self._counts_in(self._queues[queue])
            if counts[places[at]]:
                ahead = range(at, min(at + _AHEAD, len(places)))
                best = min(ahead, key=lambda place: counts[places[place]])
                places[at], places[best] = places[best], places[at]
            counts[places[at]] += 1
            self._owners[partition] = places[at]

    def _counts_in(self, queue: QueuePlaces) -> Counter[str | None]:
        """How many of a queue each has by now."""
        return Counter(self._owners[queue.begin : queue.end])


def _places(free: Mapping[str, int]) -> list[str]:
    """Each service as often as it has places, and at even distances: neighbours are of different services."""
    places = [service for service, count in free.items() for _ in range(count)]
    order = [(number + 0.5) / count for count in free.values() for number in range(count)]
    return [places[at] for at in sorted(range(len(places)), key=order.__getitem__)]
