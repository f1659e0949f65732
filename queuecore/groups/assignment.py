"""Which member of a group reads which partition: pure, and the same answer for the same question.

`assign` gives every partition that somebody wants to one of those who want it; one that nobody wants is absent.

range        per topic, in stretches: of 7 partitions the first of 3 members gets 0, 1, 2, the others two each. Where
             members want different partitions of a topic, each set of partitions that the same members want is
             divided in this way.
round_robin  the partitions of all topics in order, to the members in turn; who does not want one is passed over.
sticky       as evenly as the wants allow, moving as few partitions as that takes; see `sticky`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

from queuecore.groups.sticky import assign_sticky
from queuecore.providers.options import Strategy
from queuecore.topics import ProviderPartition

# Each member with the partitions it wants.
WantedPartitions = Mapping[str, Collection[ProviderPartition]]
Assignment = dict[ProviderPartition, str]


def assign(strategy: Strategy, wants: WantedPartitions, current: Mapping[ProviderPartition, str]) -> Assignment:
    """Each wanted partition with its member. `current` says who has which now; only `sticky` looks at it, and it may
    name members and partitions that are gone."""
    return _ASSIGNORS[strategy](wants, current)


def _assign_range(wants: WantedPartitions, current: Mapping[ProviderPartition, str]) -> Assignment:  # noqa: ARG001
    alike: dict[tuple[str, tuple[str, ...]], list[ProviderPartition]] = defaultdict(list)
    for partition, wanting in _wanted_by(wants).items():
        alike[partition.topic, tuple(wanting)].append(partition)
    plan: Assignment = {}
    for (_, members), partitions in alike.items():
        each, more = divmod(len(partitions), len(members))
        start = 0
        for index, member in enumerate(members):
            stop = start + each + (1 if index < more else 0)
            plan.update(dict.fromkeys(partitions[start:stop], member))
            start = stop
    return plan


def _assign_round_robin(wants: WantedPartitions, current: Mapping[ProviderPartition, str]) -> Assignment:  # noqa: ARG001
    members = sorted(wants)
    plan: Assignment = {}
    turn = 0
    for partition, wanting in _wanted_by(wants).items():
        while members[turn % len(members)] not in wanting:
            turn += 1
        plan[partition] = members[turn % len(members)]
        turn += 1
    return plan


def _assign_sticky(wants: WantedPartitions, current: Mapping[ProviderPartition, str]) -> Assignment:
    return assign_sticky(_wanted_by(wants), current)


def _wanted_by(wants: WantedPartitions) -> dict[ProviderPartition, list[str]]:
    """Each wanted partition with those who want it, both in order."""
    wanted: dict[ProviderPartition, list[str]] = defaultdict(list)
    for member in sorted(wants):
        for partition in set(wants[member]):
            wanted[partition].append(member)
    return {partition: wanted[partition] for partition in sorted(wanted)}


_ASSIGNORS: dict[Strategy, Callable[[WantedPartitions, Mapping[ProviderPartition, str]], Assignment]] = {
    "range": _assign_range,
    "round_robin": _assign_round_robin,
    "sticky": _assign_sticky,
}
