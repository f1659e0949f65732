"""Groups and what they have committed."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription  # type: ignore[attr-defined]

from queuecore.errors import GroupActive, OffsetOutOfRange
from queuecore.providers.base import GroupDescription
from queuecore.providers.kafka.asking import failed_with
from queuecore.providers.kafka.codes import NO_SUCH_GROUP, NOT_A_MEMBER
from queuecore.providers.kafka.forgetting import forget_offsets
from queuecore.providers.kafka.offsets import OffsetAdmin
from queuecore.providers.kafka.records import from_kafka, to_kafka
from queuecore.topics import ProviderPartition

Committed = dict[ProviderPartition, int]


class GroupAdmin(OffsetAdmin):
    """Where the library can ask for one group only, it asks for all of them at once."""

    def delete_topics(self, names: Iterable[str]) -> None:
        """Kafka makes the groups forget them by itself, soon after: this waits for it, as a new topic of that name
        would be read from where the old one was left."""
        gone = set(names)
        super().delete_topics(gone)
        remembering = self._patiently(self._group_names)

        def forgotten() -> bool:
            nonlocal remembering
            committed = self._patiently(lambda: self._committed(dict.fromkeys(remembering)))
            remembering = [group for group, places in committed.items() if any(one.topic in gone for one in places)]
            return not remembering

        self._wait_until(forgotten, f"groups still have offsets of {', '.join(sorted(gone))}")

    def committed_offsets(
        self, groups: Mapping[str, Iterable[ProviderPartition]]
    ) -> Mapping[str, Mapping[ProviderPartition, int]]:
        wanted = {group: [to_kafka(place) for place in dict.fromkeys(places)] for group, places in groups.items()}
        found = self._patiently(lambda: self._committed({group: some for group, some in wanted.items() if some}))
        return {group: found.get(group, {}) for group in groups}

    def alter_group_offsets(self, group: str, offsets: Mapping[ProviderPartition, int]) -> None:
        """GroupActive while the group has any member: the brokers look no further."""
        for place, offset in offsets.items():
            if offset < 0:
                raise OffsetOutOfRange(f"cannot commit {offset} for {place}; offsets begin at 0")
        if offsets:
            self.check(offsets)
            self._patiently(lambda: self._alter(group, offsets))

    def delete_group_offsets(self, group: str, partitions: Iterable[ProviderPartition]) -> None:
        """GroupActive while a member subscribes to one of the topics: the brokers look no further."""
        if places := set(partitions):
            self._patiently(lambda: forget_offsets(self._connection, group, places))

    def groups(self) -> Mapping[str, GroupDescription]:
        """A member that wants only some partitions of a topic is shown with all the brokers gave to it."""
        found = self._patiently(self._described_groups)
        idle = {name: None for name, group in found.items() if not group.members}
        committed = self._patiently(lambda: self._committed(idle))
        return {
            name: GroupDescription(name, _members(group))
            for name, group in found.items()
            if group.members or committed[name]
        }

    def _committed(self, groups: Mapping[str, list[TopicPartition] | None]) -> dict[str, Committed]:
        """None asks for all the group has committed."""
        self._find_coordinators(groups)
        futures: dict[str, Future[ConsumerGroupTopicPartitions]] = {}
        for group, places in groups.items():
            request = [ConsumerGroupTopicPartitions(group, places)]
            futures |= self._client.list_consumer_group_offsets(request, request_timeout=self._timeout_s)
        answers = {group: self._answer(future, _asking(group)) for group, future in futures.items()}
        return {group: self._offsets_of(group, answer) for group, answer in answers.items()}

    def _find_coordinators(self, groups: Iterable[str]) -> None:
        """CoordinatorMoves while one is starting or changing. Asked for offsets just then, librdkafka 2.16 ends the
        process with a segmentation fault (its issue 5040), so a question that is safe comes first."""
        if names := list(groups):
            futures = self._client.describe_consumer_groups(names, request_timeout=self._timeout_s)
            for name, future in futures.items():
                if not failed_with(NO_SUCH_GROUP, future):
                    self._answer(future, _asking(name))

    def _offsets_of(self, group: str, answer: ConsumerGroupTopicPartitions) -> Committed:
        places = answer.topic_partitions or []
        for place in places:
            if place.error is not None:
                raise self._connection.explain(place.error, _asking(group))
        # A negative offset is Kafka's "none".
        return {from_kafka(place): place.offset for place in places if place.offset >= 0}

    def _alter(self, group: str, offsets: Mapping[ProviderPartition, int]) -> None:
        doing = f"change the offsets of group {group}"
        wanted = [to_kafka(place, offset) for place, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, wanted)]
        [future] = self._client.alter_consumer_group_offsets(request, request_timeout=self._timeout_s).values()
        if failed_with(NOT_A_MEMBER, future):
            raise _active(group)
        for place in self._answer(future, doing).topic_partitions or []:
            self._raise_altering(group, place.error, doing)

    def _raise_altering(self, group: str, error: KafkaError | None, doing: str) -> None:
        if error is None:
            return
        raise _active(group) if error.code() == NOT_A_MEMBER else self._connection.explain(error, doing)

    def _group_names(self) -> list[str]:
        listed = self._answer(self._client.list_consumer_groups(request_timeout=self._timeout_s), "list groups")
        for error in listed.errors or []:
            raise self._connection.explain(error, "list groups")
        return sorted(group.group_id for group in listed.valid or [])

    def _described_groups(self) -> dict[str, ConsumerGroupDescription]:
        """Those that are gone when they are asked about are left out."""
        if not (names := self._group_names()):
            return {}
        futures = self._client.describe_consumer_groups(names, request_timeout=self._timeout_s)
        return {
            name: self._answer(future, f"describe group {name}")
            for name, future in futures.items()
            if not failed_with(NO_SUCH_GROUP, future)
        }


def _members(group: ConsumerGroupDescription) -> dict[str, frozenset[ProviderPartition]]:
    return {
        member.member_id: frozenset(map(from_kafka, member.assignment.topic_partitions)) for member in group.members
    }


def _active(group: str) -> GroupActive:
    return GroupActive(f"group {group} has members that read; stop its consumers first", group=group)


def _asking(group: str) -> str:
    return f"ask for offsets of group {group}"
