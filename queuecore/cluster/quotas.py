"""How many partitions of each pool a service gets: its share by weight, rounded down or up.

A share is `partitions * weight / all weights`. What rounding down leaves over are the pool's extras: each goes to a
service whose share is no whole number, one at most to each. So every count is within one of its share.

Which services get extras decides how many partitions move. A service that has more than its rounded-down share keeps
one more if it gets an extra, any other keeps nothing more. So extras go to those who have more, as long as there are
any: swapping an extra from one of them to another service makes one more partition move and saves none. Where that
leaves a choice, it is made so that the services' totals over all pools are even too (`evening`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queuecore.cluster.evening import Choice, choose
from queuecore.cluster.services import ServiceInfo


@dataclass(frozen=True, slots=True)
class Rounding:
    """A pool's shares, exactly: `whole + part / all_weights`, by service id. `extras` is the sum of the parts."""

    whole: dict[str, int]
    part: dict[str, int]
    all_weights: int
    extras: int

    def choice(self, having: Mapping[str, int]) -> tuple[list[str], Choice]:
        """Who gets an extra in any case, and from whom to choose for the rest, so that the fewest partitions move.

        `having` says how many of the pool each service has now.
        """
        broken = [service for service, part in self.part.items() if part]
        more = [service for service in broken if having.get(service, 0) > self.whole[service]]
        if self.extras <= len(more):
            return [], Choice(more, self.extras)
        rest = [service for service in broken if having.get(service, 0) <= self.whole[service]]
        return more, Choice(rest, self.extras - len(more))


def rounding(services: Sequence[ServiceInfo], partitions: int) -> Rounding:
    """In whole numbers: weights are binary fractions, so the largest denominator is one for all of them."""
    ratios = {service.service_id: service.weight.as_integer_ratio() for service in services}
    denominator = max(below for _, below in ratios.values())
    weights = {service: above * (denominator // below) for service, (above, below) in ratios.items()}
    total = sum(weights.values())
    divided = {service: divmod(partitions * weight, total) for service, weight in weights.items()}
    whole = {service: count for service, (count, _) in divided.items()}
    part = {service: rest for service, (_, rest) in divided.items()}
    return Rounding(whole, part, total, partitions - sum(whole.values()))


def quotas(roundings: Sequence[Rounding], having: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """For each pool, how many partitions each of its services gets. `having` as in `Rounding.choice`, for each pool."""
    counts = [dict(rounding.whole) for rounding in roundings]
    # Of the totals from the shares. A float will do: no promise hangs on it, and it comes out the same everywhere.
    excess: dict[str, float] = defaultdict(float)
    choices: list[Choice] = []
    for rounding, pool, count in zip(roundings, having, counts, strict=True):
        sure, choice = rounding.choice(pool)
        choices.append(choice)
        for service in sure:
            count[service] += 1
            excess[service] += 1
        for service, part in rounding.part.items():
            excess[service] -= part / rounding.all_weights
    for count, chosen in zip(counts, choose(choices, excess), strict=True):
        for service in chosen:
            count[service] += 1
    return counts
