"""What every provider promises to those who look without taking part."""
# ruff: noqa: S101

from contextlib import closing

import pytest

from queuecore.errors import OffsetOutOfRange, UnknownTopic
from queuecore.providers.base import Provider
from queuecore.testing.contract.kit import ContractKit, send_all
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class LookingContract(ContractKit):
    """Reading without a group, and offsets."""

    def test_a_reader_reads_from_any_offset_and_commits_nothing(
        self, provider: Provider, queue: list[TopicPartitionInfo]
    ) -> None:
        send_all(provider, queue[2], *[b"%d" % number for number in range(10)])
        place = queue[2].place
        with closing(provider.reader()) as reader:
            assert [one.offset for one in reader.read(place, 0, 100)] == list(range(10))
            assert [one.data for one in reader.read(place, 4, 3)] == [b"4", b"5", b"6"]
            assert [one.data for one in reader.read(place, 7, 100)] == [b"7", b"8", b"9"]
            assert reader.read(place, 10, 100) == []
            send_all(provider, queue[2], b"10")
            assert [one.data for one in reader.read(place, 10, 100)] == [b"10"]
            assert reader.read(queue[0].place, 0, 100) == []

    def test_a_reader_knows_how_far_it_got(self, provider: Provider, info: TopicPartitionInfo) -> None:
        send_all(provider, info, *[b"%d" % number for number in range(10)])
        with closing(provider.reader()) as reader:
            for offset, records, position in ((0, 4, 4), (4, 100, 10), (10, 100, 10), (2, 3, 5)):
                reader.read(info.place, offset, records)
                assert reader.position(info.place) == position

    def test_a_reader_says_what_is_not_there(self, provider: Provider, info: TopicPartitionInfo) -> None:
        send_all(provider, info, b"0")
        with closing(provider.reader()) as reader:
            with pytest.raises(OffsetOutOfRange) as refused:
                reader.read(info.place, -1, 10)
            assert refused.value.fields["beginning"] == 0
            provider.admin().delete_records({info.place: 1})
            with pytest.raises(OffsetOutOfRange) as refused:
                reader.read(info.place, 0, 10)
            assert refused.value.fields["beginning"] == 1
            with pytest.raises(UnknownTopic):
                reader.read(ProviderPartition("contract-there-is-no-such-topic", 0), 0, 10)
            with pytest.raises(UnknownTopic):
                reader.read(ProviderPartition(info.full_topic_name, 2), 0, 10)

    def test_the_admin_knows_beginning_and_end(self, provider: Provider, queue: list[TopicPartitionInfo]) -> None:
        send_all(provider, queue[0], b"0", b"1")
        send_all(provider, queue[2], b"0")
        places = [info.place for info in queue]
        admin = provider.admin()
        assert list(admin.beginning_offsets(places).values()) == [0, 0, 0]
        assert admin.end_offsets(places) == dict(zip(places, [2, 0, 1], strict=True))
        with pytest.raises(UnknownTopic):
            admin.end_offsets([ProviderPartition("contract-there-is-no-such-topic", 0)])
