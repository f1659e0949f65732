"""The sticky plan: as even as the wants allow, and of all plans as even, one that moves the fewest partitions.

"Even" means that no chain of hand-overs would take a partition from a member to one that has at least two fewer.
Where all members want the same partitions, that is: balanced to within one.

This is a minimum-cost flow. A plan costs, first, what its unevenness costs and, far less, one for every partition that
is not with its current owner. Handing partitions round a circle of members changes the cost; a plan is the best there
is when no circle makes it cheaper. So: keep what can be kept, give the rest to who has least, and hand round while it
gets cheaper. A hub among the members stands for "one more" and "one less", so that a chain is a circle too.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from queuecore.topics import ProviderPartition


class _Kind(NamedTuple):
    """Partitions that may go to the same members and have the same current owner cost the same everywhere, so they
    are handled together: their number does not matter, only that of the members."""

    wanting: tuple[int, ...]
    # The current owner, if it may keep the partition.
    home: int | None

    def cost_at(self, member: int) -> int:
        return 0 if self.home is None or self.home == member else 1


class _Gift(NamedTuple):
    """The cheapest thing one member could hand to another."""

    cost: int
    kind: _Kind


@dataclass
class _Holding:
    partitions: dict[_Kind, list[ProviderPartition]] = field(default_factory=lambda: defaultdict(list))
    count: int = 0

    def put(self, kind: _Kind, partition: ProviderPartition) -> None:
        self.partitions[kind].append(partition)
        self.count += 1

    def take(self, kind: _Kind) -> ProviderPartition:
        partition = self.partitions[kind].pop()
        self.count -= 1
        if not self.partitions[kind]:
            del self.partitions[kind]
        return partition

    def gifts(self, me: int) -> dict[int, _Gift]:
        """The cheapest for each other member that wants something of this."""
        gifts: dict[int, _Gift] = {}
        for kind in self.partitions:
            for other in kind.wanting:
                gift = _Gift(kind.cost_at(other) - kind.cost_at(me), kind)
                if other != me and (other not in gifts or gift.cost < gifts[other].cost):
                    gifts[other] = gift
        return gifts


def assign_sticky(
    wanted_by: Mapping[ProviderPartition, Sequence[str]], current: Mapping[ProviderPartition, str]
) -> dict[ProviderPartition, str]:
    """Each partition with one of those who want it. `wanted_by` has no empty entry."""
    members = sorted({member for wanting in wanted_by.values() for member in wanting})
    number = {member: index for index, member in enumerate(members)}
    holdings = [_Holding() for _ in members]
    homeless: list[tuple[_Kind, ProviderPartition]] = []
    for partition, wanting in wanted_by.items():
        owner = current.get(partition)
        home = number[owner] if owner is not None and owner in wanting else None
        kind = _Kind(tuple(number[member] for member in wanting), home)
        if home is None:
            homeless.append((kind, partition))
        else:
            holdings[home].put(kind, partition)
    for kind, partition in homeless:
        holdings[min(kind.wanting, key=lambda member: holdings[member].count)].put(kind, partition)
    _hand_round(holdings)
    return {
        partition: members[index]
        for index, holding in enumerate(holdings)
        for partitions in holding.partitions.values()
        for partition in partitions
    }


def _hand_round(holdings: list[_Holding]) -> None:
    """Make the plan cheaper until no circle can. Every step lowers the cost, so this ends."""
    hub = len(holdings)
    gifts = [holding.gifts(me) for me, holding in enumerate(holdings)]
    while circle := _cheaper_circle(holdings, gifts):
        moves = [(giver, taker) for giver, taker in zip(circle, circle[1:] + circle[:1], strict=True)]
        for giver, taker in moves:
            if hub not in (giver, taker):
                kind = gifts[giver][taker].kind
                holdings[taker].put(kind, holdings[giver].take(kind))
        for member in circle:
            if member != hub:
                gifts[member] = holdings[member].gifts(member)


def _cheaper_circle(holdings: list[_Holding], gifts: list[dict[int, _Gift]]) -> list[int]:
    """Members, each of which hands something to the next and the last to the first, so that the plan gets cheaper;
    empty when there are none. (Bellman and Ford's search for a negative cycle.)"""
    hub = len(holdings)
    # More than any circle's moves can cost, so evenness comes first.
    uneven = hub + 2
    edges = [(giver, taker, gift.cost) for giver, takers in enumerate(gifts) for taker, gift in takers.items()]
    edges += [(hub, member, -uneven * holding.count) for member, holding in enumerate(holdings)]
    edges += [(member, hub, uneven * (holding.count + 1)) for member, holding in enumerate(holdings)]
    distance = [0] * (hub + 1)
    before: list[int | None] = [None] * (hub + 1)
    changed = True
    while changed:
        changed = False
        for giver, taker, cost in edges:
            if distance[giver] + cost < distance[taker]:
                distance[taker] = distance[giver] + cost
                before[taker] = giver
                changed = True
        if changed and (circle := _circle_in(before)):
            return circle
    return []


def _circle_in(before: list[int | None]) -> list[int]:
    """A circle among the links back, in the order of giving; empty when they lead nowhere."""
    seen_from: list[int | None] = [None] * len(before)
    for start in range(len(before)):
        at: int | None = start
        while at is not None and seen_from[at] is None:
            seen_from[at] = start
            at = before[at]
        if at is not None and seen_from[at] == start:
            circle = [at]
            while (step := before[circle[-1]]) is not None and step != at:
                circle.append(step)
            return circle[::-1]
    return []
