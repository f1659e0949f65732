"""What every provider promises to those who administer."""
# ruff: noqa: S101

from dataclasses import replace

import pytest

from queuecore.errors import ConfigurationError, GroupActive, InvalidName, OffsetOutOfRange, UnknownTopic
from queuecore.providers.base import DAY_MS, GroupDescription, Provider, TopicSpec
from queuecore.testing.contract.kit import (
    ContractKit,
    Subscribe,
    create_topic,
    new_name,
    place_of,
    places,
    read_all,
    send_all,
    take,
)
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

NO_SUCH_TOPIC = "contract-there-is-no-such-topic"


def plain(spec: TopicSpec) -> TopicSpec:
    """As a provider of one machine tells it; how many copies there are differs."""
    return replace(spec, replication_factor=None, min_insync_replicas=None)


class AdministeringContract(ContractKit):
    """Topics come, change and go; records and offsets are set right by hand."""

    def test_creating_a_topic_again_changes_nothing(self, provider: Provider) -> None:
        name = new_name()
        admin = provider.admin()
        admin.create_topics([TopicSpec(name, partitions=2, retention_ms=3 * DAY_MS)])
        admin.create_topics([TopicSpec(name, partitions=5, retention_ms=DAY_MS), TopicSpec(f"{name}.0")])
        topics = admin.topics()
        assert plain(topics[name]) == TopicSpec(name, partitions=2, retention_ms=3 * DAY_MS)
        assert plain(topics[f"{name}.0"]) == TopicSpec(f"{name}.0")

    def test_names_are_told_in_order_and_page_by_page(self, provider: Provider) -> None:
        name, admin = new_name(), provider.admin()
        made = [f"{name}.{number}" for number in (0, 1, 10, 2)]
        admin.create_topics(map(TopicSpec, reversed(made)))
        wait_until(lambda: set(made) <= set(admin.topic_names()))
        assert admin.topic_names() == sorted(admin.topics())
        assert admin.topic_names(name, 3) == made[:3]
        assert admin.topic_names(made[2])[:1] == made[3:]
        assert admin.topic_names("~") == []

    def test_an_impossible_topic_is_refused(self, provider: Provider) -> None:
        for name in ("with space", "up/../and/away", "..", "x" * 250):
            with pytest.raises(InvalidName):
                provider.admin().create_topics([TopicSpec(name)])
        with pytest.raises(ConfigurationError):
            TopicSpec("no-partitions", partitions=0)
        with pytest.raises(ConfigurationError):
            TopicSpec("no-copies", replication_factor=0)
        with pytest.raises(ConfigurationError):
            TopicSpec("no-copies", min_insync_replicas=0)

    def test_one_copy_is_what_every_provider_has(self, provider: Provider) -> None:
        name = new_name()
        provider.admin().create_topics([TopicSpec(name, replication_factor=1, min_insync_replicas=1)])
        provider.admin().alter_topics([TopicSpec(name, retention_ms=DAY_MS, replication_factor=1)])
        wait_until(lambda: plain(provider.admin().topics()[name]) == TopicSpec(name, retention_ms=DAY_MS))

    def test_more_copies_than_there_are_machines_are_refused(self, provider: Provider) -> None:
        admin, spec = provider.admin(), TopicSpec(new_name())
        too_many = [replace(spec, replication_factor=9), replace(spec, min_insync_replicas=9)]
        for wanted in too_many:
            with pytest.raises(ConfigurationError, match=spec.name):
                admin.create_topics([wanted])
        assert spec.name not in admin.topics()
        admin.create_topics([spec])
        for wanted in too_many:
            with pytest.raises(ConfigurationError, match=spec.name):
                admin.alter_topics([wanted])
        assert plain(admin.topics()[spec.name]) == spec

    def test_a_topic_can_be_changed_and_keeps_its_records(self, provider: Provider) -> None:
        admin = provider.admin()
        spec = TopicSpec(new_name(), partitions=2)
        infos = create_topic(provider, spec)
        send_all(provider, infos[1], b"kept")
        larger = TopicSpec(spec.name, 3, 2 * DAY_MS, 10_000_000, 4 * 1024 * 1024, "compact,delete")
        admin.alter_topics([larger])
        wait_until(lambda: plain(admin.topics()[spec.name]) == larger)
        added = TopicPartitionInfo(spec.name, 2, use_internal_partition=True)
        assert read_all(provider, infos[1].place) == [b"kept"]
        assert wait_until(lambda: admin.end_offsets([added.place])) == {added.place: 0}

    def test_a_topic_cannot_shrink_and_must_be_there_to_be_changed(
        self, provider: Provider, inner: list[TopicPartitionInfo]
    ) -> None:
        admin = provider.admin()
        with pytest.raises(ConfigurationError):
            admin.alter_topics([TopicSpec(inner[0].topic, partitions=2)])
        with pytest.raises(UnknownTopic):
            admin.alter_topics([TopicSpec(NO_SUCH_TOPIC)])
        assert admin.topics()[inner[0].topic].partitions == 3

    def test_a_topic_is_described_with_its_partitions(self, provider: Provider) -> None:
        spec = TopicSpec(new_name(), partitions=2, retention_ms=5 * DAY_MS)
        infos = create_topic(provider, spec)
        send_all(provider, infos[1], b"0", b"1", b"2")
        provider.admin().delete_records({infos[1].place: 1})
        description = provider.admin().describe_topics([spec.name])[spec.name]
        assert plain(description.spec) == spec
        assert [(one.place, one.beginning, one.end) for one in description.partitions] == [
            (infos[0].place, 0, 0),
            (infos[1].place, 1, 3),
        ]
        assert all(one.size_bytes is None or one.size_bytes >= 0 for one in description.partitions)
        with pytest.raises(UnknownTopic):
            provider.admin().describe_topics([spec.name, NO_SUCH_TOPIC])

    def test_a_deleted_topic_is_gone_and_a_new_one_of_its_name_is_empty(self, provider: Provider, group: str) -> None:
        admin = provider.admin()
        spec = TopicSpec(new_name(), partitions=2)
        [info, _] = create_topic(provider, spec)
        send_all(provider, info, b"0", b"1")
        admin.alter_group_offsets(group, {info.place: 1})
        admin.delete_topics([spec.name, NO_SUCH_TOPIC])
        wait_until(lambda: spec.name not in admin.topics())
        with pytest.raises(UnknownTopic):
            admin.end_offsets([info.place])

        create_topic(provider, TopicSpec(spec.name))
        wait_until(lambda: spec.name in admin.topics())
        assert plain(admin.topics()[spec.name]) == TopicSpec(spec.name)
        assert admin.committed_offsets({group: [info.place]}) == {group: {}}
        assert [one.offset for one in send_all(provider, info, b"new")] == [0]
        assert read_all(provider, info.place) == [b"new"]

    def test_records_can_be_deleted_up_to_an_offset(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        admin, info = provider.admin(), queue[0]
        send_all(provider, info, b"0", b"1", b"2", b"3")
        assert admin.delete_records({info.place: 2, queue[1].place: 0}) == {info.place: 2, queue[1].place: 0}
        assert admin.delete_records({info.place: 1}) == {info.place: 2}
        assert admin.beginning_offsets([info.place]) == {info.place: 2}
        assert read_all(provider, info.place) == [b"2", b"3"]
        with pytest.raises(OffsetOutOfRange):
            admin.delete_records({info.place: 5})
        admin.alter_group_offsets(group, {info.place: 1})
        assert [record.data for record in take(consumers(provider, group, queue), 2)] == [b"2", b"3"]

    def test_offsets_are_found_by_time(self, provider: Provider, queue: list[TopicPartitionInfo]) -> None:
        place, empty = queue[0].place, queue[1].place
        stored = [send_all(provider, queue[0], b"x")[0] for _ in range(5)]
        for time_ms in {0, *(one.timestamp_ms for one in stored), stored[-1].timestamp_ms + 1}:
            first = next((one.offset for one in stored if one.timestamp_ms >= time_ms), 5)
            assert provider.admin().offsets_for_times({place: time_ms, empty: 0}) == {place: first, empty: 0}
        with pytest.raises(UnknownTopic):
            provider.admin().offsets_for_times({ProviderPartition(NO_SUCH_TOPIC, 0): 0})

    def test_a_groups_offsets_can_be_set_and_forgotten(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        admin, [zero, one, two] = provider.admin(), places(queue)
        for info in queue:
            send_all(provider, info, b"0", b"1", b"2")
        admin.alter_group_offsets(group, {zero: 1, one: 3, two: 2})
        assert admin.committed_offsets({group: [zero, one, two]}) == {group: {zero: 1, one: 3, two: 2}}
        admin.alter_group_offsets(group, {two: 1})
        admin.delete_group_offsets(group, [one])
        assert admin.committed_offsets({group: [zero, one, two]}) == {group: {zero: 1, two: 1}}
        records = take(consumers(provider, group, queue), 7)
        assert sorted((place_of(record), record.data) for record in records) == [
            *[(zero, b"1"), (zero, b"2")],
            *[(one, b"0"), (one, b"1"), (one, b"2")],
            *[(two, b"1"), (two, b"2")],
        ]

    def test_a_groups_offsets_cannot_be_set_where_there_is_nothing(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str
    ) -> None:
        if not self.knows_ends:
            pytest.skip("this provider takes any offset for a group")
        send_all(provider, queue[0], b"0")
        for offset in (-1, 2):
            with pytest.raises(OffsetOutOfRange):
                provider.admin().alter_group_offsets(group, {queue[1].place: 0, queue[0].place: offset})
        assert provider.admin().committed_offsets({group: places(queue)}) == {group: {}}

    def test_a_groups_offsets_stay_as_they_are_while_a_member_reads(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        admin, place = provider.admin(), info.place
        send_all(provider, info, b"0", b"1")
        consumer = consumers(provider, group, [info])
        take(consumer, 2)
        consumer.commit()
        with pytest.raises(GroupActive):
            admin.alter_group_offsets(group, {place: 0})
        with pytest.raises(GroupActive):
            admin.delete_group_offsets(group, [place])
        assert admin.committed_offsets({group: [place]}) == {group: {place: 2}}
        [held] = admin.groups()[group].members.values()
        assert place in held

        consumer.stop()
        wait_until(lambda: admin.groups()[group] == GroupDescription(group, {}))
        admin.alter_group_offsets(group, {place: 0})
        assert admin.committed_offsets({group: [place]}) == {group: {place: 0}}

    def test_all_that_a_group_has_committed_is_known_without_naming_partitions(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str
    ) -> None:
        admin, (zero, *_, last) = provider.admin(), places(queue)
        send_all(provider, queue[-1], b"0", b"1")
        admin.alter_group_offsets(group, {zero: 0, last: 2})
        asked = {group: None, f"{group}-other": None, f"{group}-named": [zero]}
        assert admin.committed_offsets(asked) == {
            group: {zero: 0, last: 2},
            f"{group}-other": {},
            f"{group}-named": {},
        }

    def test_groups_are_told_in_order_a_page_at_a_time(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        admin = provider.admin()
        first, second, third, last = (f"{group}-{number}" for number in range(4))
        for name in (last, second, first):
            admin.alter_group_offsets(name, {info.place: 0})
        send_all(provider, info, b"0")
        take(consumers(provider, third, [info]), 1)
        assert [name for name in admin.groups() if name.startswith(f"{group}-")] == [first, second, third, last]
        page = admin.groups(first, 2)
        assert list(page) == [second, third]
        assert (page[second], len(page[third].members)) == (GroupDescription(second, {}), 1)
        assert next(iter(admin.groups(third))) == last
        assert admin.groups(first, 0) == {}

    def test_a_group_nobody_used_has_committed_nothing(self, provider: Provider, info: TopicPartitionInfo) -> None:
        asked = {"contract-never-used": [info.place], "contract-nothing-asked": []}
        assert provider.admin().committed_offsets(asked) == {name: {} for name in asked}
        assert "contract-never-used" not in provider.admin().groups()

    def test_asking_for_nothing_gives_nothing(self, provider: Provider, group: str) -> None:
        admin = provider.admin()
        admin.create_topics([])
        admin.alter_topics([])
        admin.delete_topics([])
        admin.alter_group_offsets(group, {})
        admin.delete_group_offsets(group, [])
        assert (admin.beginning_offsets([]), admin.end_offsets([]), admin.committed_offsets({})) == ({}, {}, {})
        assert (admin.describe_topics([]), admin.delete_records({}), admin.offsets_for_times({})) == ({}, {}, {})
