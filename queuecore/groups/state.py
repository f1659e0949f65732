"""The state of one consumer group: who is in it, what is planned for whom, and who reads what now.

No clock, no lock, no storage: whoever keeps a `GroupState` lets one caller at a time load it, change it and save it,
and says which members have been silent for too long.

The plan (`targets`) changes at once when a member joins or goes or a topic grows; reading (`owners`) follows as the
members look. A partition that moves from A to B is B's only when A has released it, or is gone. So a consumer, inside
`poll`, whenever `version` is not the one it saw last:

    state.expire(silent_members)        # of `members` and of `displaced`
    if state.is_displaced(me, member_id):
        ...                             # all is lost: another has our member id, and fighting back helps nobody
    if not state.is_member(me):         # we were silent for too long ourselves
        state.join(me, wants, counts, member_id)
    sync = state.sync(me)
    lost = held - sync.owned            # tell listener.lost; a commit would be refused
    # save; tell listener.revoked(sync.revoked), which may still commit; then, in a new turn:
    state.release(me, sync.revoked)
    taken = state.take(me)
    # save; begin to read `taken` at the committed offsets; tell listener.assigned(taken)

A member that joins again wants something else: what it owns and still wants goes on, the rest is `revoked`.

Commits are fenced by ownership: refuse one (NotOwner) unless `is_owner(me, partitions)`, checked in the turn that
stores it. A member that expired owns nothing, so what it does late has no effect; one that joins again owns nothing
until it takes it anew.

`version` rises with every change of anything: who sees the same number need not look, and a turn that left it as it
was has nothing to save. `generation` rises with every change of the plan.

Signs of life are not kept here, so that saying "I am alive" does not rewrite the state: keep the time of each
member's last one beside it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from queuecore.groups.assignment import assign
from queuecore.providers.base import GroupDescription
from queuecore.providers.options import Strategy, check_choices
from queuecore.topics import ProviderPartition

NONE: frozenset[ProviderPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Wants:
    """What a member asks for: these partitions, and these topics whole, as they grow."""

    partitions: frozenset[ProviderPartition] = NONE
    topics: frozenset[str] = frozenset()
    strategy: Strategy = "sticky"

    def names(self) -> set[str]:
        """Every topic something is wanted of."""
        return {*self.topics, *(partition.topic for partition in self.partitions)}

    def existing(self, counts: Mapping[str, int]) -> Iterator[ProviderPartition]:
        """The wanted partitions that there are."""
        for topic in self.topics:
            yield from (ProviderPartition(topic, number) for number in range(counts.get(topic, 0)))
        yield from (
            one for one in self.partitions if one.topic not in self.topics and one.partition < counts.get(one.topic, 0)
        )


@dataclass(frozen=True, slots=True)
class Sync:
    """Where a member stands.

    owned    what it reads now
    revoked  of these, what is planned for another member or wanted by nobody: to be released
    free     what is planned for it and read by nobody: `take` gives it
    """

    owned: frozenset[ProviderPartition]
    revoked: frozenset[ProviderPartition]
    free: frozenset[ProviderPartition]


class GroupState:
    """A group as its members share it. `to_json` and `from_json` in `stored` make it text and back."""

    def __init__(self) -> None:
        self.generation = 0
        self.version = 0
        # In the order they joined: where members name different strategies, the one that is here longest decides.
        self.members: dict[str, Wants] = {}
        # By which id a member is known again. Invariant: no two members have the same.
        self.member_ids: dict[str, str] = {}
        # Members that another with their id has put out, until they join again or are gone.
        self.displaced: set[str] = set()
        # How many partitions each topic has that somebody wants or owns something of.
        self.counts: dict[str, int] = {}
        self.targets: dict[ProviderPartition, str] = {}
        # Invariant: every owner is a member. A partition that no longer exists has no owner.
        self.owners: dict[ProviderPartition, str] = {}

    def join(self, member: str, wants: Wants, counts: Mapping[str, int], member_id: str | None = None) -> None:
        """Come in, or want something else: what the member owns it keeps, and is to release what it wants no longer.
        `counts` says how many partitions the wanted topics have; one that it does not name has none. Who had the
        `member_id` until now is out, and what was planned for it is planned for this one. ConfigurationError, and
        nothing has changed, for a strategy there is not: kept, it would stop every later member of the group too."""
        check_choices(wants, strategy=Strategy)
        self.member_ids.pop(member, None)
        self.displaced.discard(member)
        if member_id is not None:
            self._displace(member, member_id)
        self.members[member] = wants
        self._count({topic: counts.get(topic, 0) for topic in wants.names()})
        self._replan()

    def leave(self, member: str) -> None:
        """Go, and release everything. One that is not in the group is fine."""
        self.expire([member])

    def expire(self, members: Iterable[str]) -> None:
        """Take out members that left without a word: what they owned is free at once."""
        silent = set(members)
        if self.displaced & silent:
            self.displaced -= silent
            self.version += 1
        gone = [member for member in self.members if member in silent]
        if not gone:
            return
        self._disown(gone)
        for member in gone:
            self._remove(member)
        self._replan()

    def topics_changed(self, counts: Mapping[str, int]) -> None:
        """How many partitions these topics have now, 0 for one that was deleted: what no longer exists loses its
        owner at once. A topic nobody wants is fine."""
        changed = {topic: count for topic, count in counts.items() if self.counts.get(topic, count) != count}
        if changed:
            self._count(changed)
            self._replan()

    def is_member(self, member: str) -> bool:
        return member in self.members

    def is_displaced(self, member: str, member_id: str | None) -> bool:
        """Whether another member has joined with this id since, be it gone again or not."""
        if member in self.displaced:
            return True
        return member_id is not None and self._known_as(member_id) not in {None, member}

    def is_owner(self, member: str, partitions: Iterable[ProviderPartition]) -> bool:
        """Whether the member owns all of these, and so may commit them."""
        return all(self.owners.get(partition) == member for partition in partitions)

    def sync(self, member: str) -> Sync:
        """Where the member stands; all empty for one that is not in the group."""
        owned = frozenset(partition for partition, owner in self.owners.items() if owner == member)
        planned = {partition for partition, target in self.targets.items() if target == member}
        return Sync(owned, owned - planned, frozenset(planned - self.owners.keys()))

    def release(self, member: str, partitions: Iterable[ProviderPartition]) -> None:
        """Give these up; one the member does not own is fine."""
        mine = [partition for partition in partitions if self.owners.get(partition) == member]
        for partition in mine:
            del self.owners[partition]
        if mine:
            self.version += 1

    def take(self, member: str) -> frozenset[ProviderPartition]:
        """Own what is planned for the member and free; what is new."""
        free = self.sync(member).free
        self.owners.update(dict.fromkeys(free, member))
        if free:
            self.version += 1
        return free

    def describe(self, name: str) -> GroupDescription:
        return GroupDescription(name, {member: self.sync(member).owned for member in self.members})

    def _known_as(self, member_id: str) -> str | None:
        return next((member for member, one in self.member_ids.items() if one == member_id), None)

    def _displace(self, member: str, member_id: str) -> None:
        if (before := self._known_as(member_id)) is not None:
            self._disown([before])
            self._remove(before)
            self.displaced.add(before)
            self.targets = {
                partition: member if target == before else target for partition, target in self.targets.items()
            }
        self.member_ids[member] = member_id

    def _remove(self, member: str) -> None:
        del self.members[member]
        self.member_ids.pop(member, None)

    def _disown(self, members: Collection[str]) -> None:
        self.owners = {partition: owner for partition, owner in self.owners.items() if owner not in members}

    def _count(self, counts: Mapping[str, int]) -> None:
        self.counts.update(counts)
        self.owners = {
            partition: owner
            for partition, owner in self.owners.items()
            if partition.partition < self.counts[partition.topic]
        }

    def _replan(self) -> None:
        wanted = {topic for wants in self.members.values() for topic in wants.names()}
        known = wanted | {partition.topic for partition in self.owners}
        self.counts = {topic: count for topic, count in self.counts.items() if topic in known}
        wants = {member: list(wants.existing(self.counts)) for member, wants in self.members.items()}
        strategy: Strategy = next((wants.strategy for wants in self.members.values()), "sticky")
        # Who reads a partition now is more its owner than the one it was planned for.
        targets = assign(strategy, wants, {**self.targets, **self.owners})
        if targets != self.targets:
            self.targets = targets
            self.generation += 1
        self.version += 1
