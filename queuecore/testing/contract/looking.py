"""What every provider promises to those who look and administer."""
# ruff: noqa: S101

from contextlib import closing
from uuid import uuid4

import pytest

from queuecore.errors import ConfigurationError, InvalidName, OffsetOutOfRange, UnknownTopic
from queuecore.providers.base import DAY_MS, Provider, TopicSpec
from queuecore.testing.contract.kit import ContractKit, send_all
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class LookingContract(ContractKit):
    """Reading without a group, topics, and offsets."""

    def test_a_reader_reads_from_any_offset_and_commits_nothing(
        self, provider: Provider, inner: list[TopicPartitionInfo]
    ) -> None:
        send_all(provider, inner[2], *[b"%d" % number for number in range(10)])
        place = inner[2].place
        with closing(provider.reader()) as reader:
            assert [one.offset for one in reader.read(place, 0, 100)] == list(range(10))
            assert [one.data for one in reader.read(place, 4, 3)] == [b"4", b"5", b"6"]
            assert [one.data for one in reader.read(place, 7, 100)] == [b"7", b"8", b"9"]
            assert reader.read(place, 10, 100) == []
            send_all(provider, inner[2], b"10")
            assert [one.data for one in reader.read(place, 10, 100)] == [b"10"]
            assert reader.read(inner[0].place, 0, 100) == []

    def test_a_reader_says_what_is_not_there(self, provider: Provider, info: TopicPartitionInfo) -> None:
        send_all(provider, info, b"0")
        with closing(provider.reader()) as reader:
            with pytest.raises(OffsetOutOfRange) as refused:
                reader.read(info.place, -1, 10)
            assert refused.value.fields["beginning"] == 0
            with pytest.raises(UnknownTopic):
                reader.read(ProviderPartition("contract-there-is-no-such-topic", 0), 0, 10)
            with pytest.raises(UnknownTopic):
                reader.read(ProviderPartition(info.full_topic_name, 1), 0, 10)

    def test_creating_a_topic_again_changes_nothing(self, provider: Provider) -> None:
        name = f"contract-{uuid4().hex[:12]}"
        admin = provider.admin()
        admin.create_topics([TopicSpec(name, partitions=2, retention_ms=3 * DAY_MS)])
        admin.create_topics([TopicSpec(name, partitions=5, retention_ms=DAY_MS), TopicSpec(f"{name}.0")])
        topics = admin.topics()
        assert topics[name] == TopicSpec(name, partitions=2, retention_ms=3 * DAY_MS)
        assert topics[f"{name}.0"] == TopicSpec(f"{name}.0")

    def test_an_impossible_topic_is_refused(self, provider: Provider) -> None:
        for name in ("with space", "up/../and/away", "..", "x" * 250):
            with pytest.raises(InvalidName):
                provider.admin().create_topics([TopicSpec(name)])
        with pytest.raises(ConfigurationError):
            TopicSpec("no-partitions", partitions=0)

    def test_the_admin_knows_beginning_and_end(self, provider: Provider, inner: list[TopicPartitionInfo]) -> None:
        send_all(provider, inner[0], b"0", b"1")
        send_all(provider, inner[2], b"0")
        places = [info.place for info in inner]
        admin = provider.admin()
        assert list(admin.beginning_offsets(places).values()) == [0, 0, 0]
        assert admin.end_offsets(places) == dict(zip(places, [2, 0, 1], strict=True))
        with pytest.raises(UnknownTopic):
            admin.end_offsets([ProviderPartition("contract-there-is-no-such-topic", 0)])

    def test_a_group_nobody_used_has_committed_nothing(self, provider: Provider, info: TopicPartitionInfo) -> None:
        asked = {"contract-never-used": [info.place], "contract-nothing-asked": []}
        assert provider.admin().committed_offsets(asked) == {name: {} for name in asked}

    def test_asking_for_nothing_gives_nothing(self, provider: Provider) -> None:
        admin = provider.admin()
        admin.create_topics([])
        assert (admin.beginning_offsets([]), admin.end_offsets([]), admin.committed_offsets({})) == ({}, {}, {})
