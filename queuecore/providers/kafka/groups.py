"""Groups and what they have committed."""

from collections.abc import Collection, Iterable, Mapping

from kafka import KafkaAdminClient
from kafka.errors import GroupIdNotFoundError, KafkaError, NoError, UnknownMemberIdError, UnknownTopicOrPartitionError
from kafka.structs import OffsetAndMetadata

from queuecore.errors import GroupActive, OffsetOutOfRange
from queuecore.providers.base import GroupDescription
from queuecore.providers.kafka.members import Members, find_groups, other_members
from queuecore.providers.kafka.offsets import OffsetAdmin
from queuecore.topics import ProviderPartition

Committed = dict[ProviderPartition, int]

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
        self, groups: Mapping[str, Iterable[ProviderPartition]]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        wanted = {group: set(places) for group, places in groups.items()}
        found = self._committed({group: places for group, places in wanted.items() if places})
        return {group: found.get(group, {}) for group in groups}

    def alter_group_offsets(self, group: str, offsets: Mapping[ProviderPartition, int]) -> None:
        """GroupActive while the group has any member: the brokers look no further."""
        for place, offset in offsets.items():
            if offset < 0:
                raise OffsetOutOfRange(f"cannot commit {offset} for {place}; offsets begin at 0")
        if not offsets:
            return
        self.check(offsets)
        wanted = {place: OffsetAndMetadata(offset, "", None) for place, offset in offsets.items()}

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

    def groups(self) -> Mapping[str, GroupDescription]:
        """A member that wants only some partitions of a topic is shown with all the brokers gave to it."""
        found = self._ask(self._members, "describe groups")
        committed = self._committed({name: None for name, members in found.items() if not members})
        return {name: GroupDescription(name, members) for name, members in found.items() if members or committed[name]}

    def _committed(self, groups: Mapping[str, Collection[ProviderPartition] | None]) -> dict[str, Committed]:
        """None asks for all the group has committed."""
        if not groups:
            return {}
        found = self._ask(lambda client: client.list_group_offsets(groups), f"ask for offsets of {_named(groups)}")
        # A negative offset is Kafka's "none".
        return {
            group: {ProviderPartition(*place): kept.offset for place, kept in places.items() if kept.offset >= 0}
            for group, places in found.items()
        }

    def _members(self, client: KafkaAdminClient) -> dict[str, Members]:
        """By group, of all groups."""
        found = find_groups(client)
        others = [group.name for group in found if group.has_members and not group.is_classic]
        return {group.name: group.members for group in found} | other_members(self._connection, others)


def _raise_failures(outcomes: Mapping[object, type[KafkaError]], fine: type[KafkaError] = NoError) -> None:
    for outcome in outcomes.values():
        if outcome not in (NoError, fine):
            raise outcome


def _named(groups: Collection[str]) -> str:
    names = sorted(groups)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"group{'s' * (len(names) > 1)} {', '.join(names[:_NAMED])}{more}"
