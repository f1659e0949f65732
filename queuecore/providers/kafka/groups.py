"""Groups and what they have committed."""

from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from kafka import KafkaAdminClient
from kafka.errors import GroupIdNotFoundError, KafkaError, NoError, UnknownMemberIdError, UnknownTopicOrPartitionError
from kafka.structs import OffsetAndMetadata

from queuecore.errors import GroupActive, OffsetOutOfRange
from queuecore.providers.base import GroupDescription
from queuecore.providers.kafka.epochs import parse_epoch
from queuecore.providers.kafka.members import Members, find_groups, members_of, other_members
from queuecore.providers.kafka.offsets import OffsetAdmin
from queuecore.topics import ProviderPartition

Committed = dict[ProviderPartition, int]
Kept = Mapping[ProviderPartition, OffsetAndMetadata]

# How many groups an error names.
_NAMED = 3


class GroupAdmin(OffsetAdmin):
    """One request for each coordinator, however many groups it has."""

    def delete_topics(self, names: Iterable[str]) -> None:
        """Kafka makes the groups forget them by itself, soon after: this waits for it, as a new topic of that name
        would be read from where the old one was left."""
        if not (gone := set(names)):
            return
        super().delete_topics(gone)
        remembering = [group.name for group in self._ask(find_groups, "list groups")]

        def forgotten() -> bool:
            nonlocal remembering
            committed = self._committed(dict.fromkeys(remembering))
            remembering = [group for group, places in committed.items() if any(one.topic in gone for one in places)]
            return not remembering

        self._wait_until(forgotten, f"groups still have offsets of {', '.join(sorted(gone))}")

    def committed_offsets(
        self, groups: Mapping[str, Iterable[ProviderPartition] | None]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        """A broker that has just become a group's coordinator may leave out the last commits for a moment: it tells
        what it knows to be on all copies in sync. Waiting for that (`require_stable`) would wait for open transactions
        too."""
        found = self._kept_in(groups)
        return {group: _offsets(found.get(group, {})) for group in groups}

    def committed_epochs(
        self, groups: Mapping[str, Iterable[ProviderPartition]]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        """As the metadata of the last commits say: other tools' resets lose them."""
        found = self._kept_in(groups)
        return {group: _epochs(found.get(group, {})) for group in groups}

    def alter_group_offsets(self, group: str, offsets: Mapping[ProviderPartition, int]) -> None:
        """GroupActive while the group has any member: the brokers look no further. Their metadata, and so epochs, are
        asked for first and written again: between the two, nobody else may alter them."""
        for place, offset in offsets.items():
            if offset < 0:
                raise OffsetOutOfRange(f"cannot commit {offset} for {place}; offsets begin at 0")
        if not offsets:
            return
        self.check(offsets)
        kept = self._kept_in({group: offsets})[group]
        notes = {place: one.metadata or "" for place, one in kept.items()}
        wanted = {place: OffsetAndMetadata(at, notes.get(place, ""), None) for place, at in offsets.items()}

        def alter(client: KafkaAdminClient) -> None:
            outcomes = client.alter_group_offsets(group, wanted)
            if UnknownMemberIdError in outcomes.values():
                raise GroupActive(f"group {group} has members that read; stop its consumers first", group=group)
            _raise_failures(outcomes)

        self._ask(alter, f"change the offsets of group {group}")

    def delete_group_offsets(self, group: str, partitions: Iterable[ProviderPartition]) -> None:
        """GroupActive while a member subscribes to one of the topics: the brokers look no further."""
        if not (places := set(partitions)):
            return

        def delete(client: KafkaAdminClient) -> None:
            try:
                outcomes = client.delete_group_offsets(group, places)
            except GroupIdNotFoundError:
                return  # it has none to forget
            _raise_failures(outcomes, fine=UnknownTopicOrPartitionError)

        self._ask(delete, f"delete offsets of group {group}")

    def is_member(self, group: str, member: str) -> bool:
        """Whether the brokers know this member of the group."""
        if not member:
            return False
        members = self._ask(lambda client: members_of(client, group), f"describe group {group}")
        if members is None:
            members = other_members(self._connection, [group]).get(group, {})
        return member in members

    def groups(self, behind: str = "", limit: int | None = None) -> Mapping[str, GroupDescription]:
        """A member that wants only some partitions of a topic is shown with all the brokers gave to it. Brokers tell of
        all groups at once; what was committed is asked of as many as are wanted, and of others only where some of these
        have committed nothing."""
        members = self._ask(self._members, "describe groups")
        names = iter(sorted(name for name in members if name > behind))
        found: dict[str, GroupDescription] = {}
        while some := list(islice(names, None if limit is None else limit - len(found))):
            committed = self._committed({name: None for name in some if not members[name]})
            known = (name for name in some if members[name] or committed[name])
            found |= {name: GroupDescription(name, members[name]) for name in known}
        return found

    def _committed(self, groups: Mapping[str, Collection[ProviderPartition] | None]) -> dict[str, Committed]:
        """None asks for all the group has committed."""
        return {group: _offsets(kept) for group, kept in self._kept(groups).items()}

    def _kept_in(self, groups: Mapping[str, Iterable[ProviderPartition] | None]) -> dict[str, Kept]:
        wanted = {group: None if places is None else set(places) for group, places in groups.items()}
        return self._kept({group: places for group, places in wanted.items() if places is None or places})

    def _kept(self, groups: Mapping[str, Collection[ProviderPartition] | None]) -> dict[str, Kept]:
        if not groups:
            return {}
        found = self._ask(lambda client: client.list_group_offsets(groups), f"ask for offsets of {_named(groups)}")
        # A negative offset is Kafka's "none".
        return {
            group: {ProviderPartition(*place): kept for place, kept in places.items() if kept.offset >= 0}
            for group, places in found.items()
        }

    def _members(self, client: KafkaAdminClient) -> dict[str, Members]:
        """By group, of all groups."""
        found = find_groups(client)
        others = [group.name for group in found if group.has_members and not group.is_classic]
        return {group.name: group.members for group in found} | other_members(self._connection, others)


def _offsets(kept: Kept) -> Committed:
    return {place: one.offset for place, one in kept.items()}


def _epochs(kept: Kept) -> dict[ProviderPartition, int]:
    found = {place: parse_epoch(one.metadata) for place, one in kept.items()}
    return {place: epoch for place, epoch in found.items() if epoch is not None}


def _raise_failures(outcomes: Mapping[object, type[KafkaError]], fine: type[KafkaError] = NoError) -> None:
    for outcome in outcomes.values():
        if outcome not in (NoError, fine):
            raise outcome


def _named(groups: Collection[str]) -> str:
    names = sorted(groups)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"group{'s' * (len(names) > 1)} {', '.join(names[:_NAMED])}{more}"
