"""What every provider promises to those who consume."""
# ruff: noqa: S101

import pytest

from queuecore.errors import NotOwner, UnknownTopic
from queuecore.providers.base import Provider
from queuecore.testing.contract.kit import POLL_MS, ContractKit, OpenProvider, Subscribe, accept, send_all, take
from queuecore.testing.waiting import wait_until
from queuecore.topics import TopicPartitionInfo


class ConsumingContract(ContractKit):
    """Where a group begins, what a commit keeps, and who owns a partition."""

    def test_a_group_begins_at_the_beginning_and_goes_on_at_its_commit(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider()
        send_all(provider, info, b"0", b"1", b"2", b"3")
        consumer = consumers(provider, group, [info])
        assert [record.data for record in take(consumer, 4)] == [b"0", b"1", b"2", b"3"]
        consumer.commit({info.place: 2})
        consumer.stop()
        provider.close()
        again = consumers(open_provider(), group, [info])
        assert [record.data for record in take(again, 2)] == [b"2", b"3"]

    def test_stopping_commits_nothing(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1")
        first = consumers(provider, group, [info])
        take(first, 2)
        first.stop()
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {}}
        assert len(take(consumers(provider, group, [info]), 2)) == 2

    def test_subscribing_again_begins_at_the_commit_again(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1", b"2")
        consumer = consumers(provider, group, [info])
        take(consumer, 3)
        consumer.commit({info.place: 1})
        consumer.subscribe([info])
        assert [record.data for record in take(consumer, 2)] == [b"1", b"2"]

    def test_groups_do_not_know_of_each_other(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1")
        place = info.place
        one, other = consumers(provider, group, [info]), consumers(provider, f"{group}-other", [info])
        assert len(take(one, 2)) == 2
        one.commit({place: 2})
        assert [record.data for record in take(other, 2)] == [b"0", b"1"]
        committed = provider.admin().committed_offsets({group: [place], f"{group}-other": [place]})
        assert committed == {group: {place: 2}, f"{group}-other": {}}

    def test_an_unknown_topic_cannot_be_subscribed_to(self, provider: Provider, group: str) -> None:
        with pytest.raises(UnknownTopic):
            provider.consumer(group).subscribe([TopicPartitionInfo("contract-there-is-no-such-topic", 0)])

    def test_one_poll_gives_a_pack_at_most(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, *[b"x"] * 1_200)
        consumer = consumers(provider, group, [info])
        assert 0 < len(wait_until(lambda: consumer.poll(POLL_MS))) <= 500

    def test_one_consumer_of_a_group_gets_each_record_and_the_other_takes_over(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider()
        both = [consumers(provider, group, [info]), consumers(open_provider(), group, [info])]
        send_all(provider, info, *[b"x"] * 5)
        accepted, holder = accept(both, info.place, 5)
        send_all(provider, info, *[b"y"] * 5)
        more, holder = accept(both, info.place, 5)
        assert accepted + more == list(range(10))

        holder.stop()
        both.remove(holder)
        send_all(provider, info, *[b"z"] * 5)
        assert accept(both, info.place, 5) == ([10, 11, 12, 13, 14], both[0])

    def test_what_a_stopped_consumer_did_not_commit_is_delivered_to_the_next(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider()
        send_all(provider, info, b"0", b"1", b"2")
        first = consumers(provider, group, [info])
        take(first, 3)
        first.commit({info.place: 1})
        second = consumers(open_provider(), group, [info])
        first.stop()
        assert [record.data for record in take(second, 2)] == [b"1", b"2"]

    def test_only_the_owner_may_commit(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider, place = open_provider(), info.place
        send_all(provider, info, b"0", b"1")
        owner = consumers(provider, group, [info])
        take(owner, 2)
        other = consumers(open_provider(), group, [info])
        with pytest.raises(NotOwner):
            other.commit({place: 2})
        owner.stop()
        with pytest.raises(NotOwner):
            owner.commit({place: 2})
        assert provider.admin().committed_offsets({group: [place]}) == {group: {}}

    def test_partitions_inside_a_topic_are_apart(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        for info in inner:
            send_all(provider, info, b"%d-0" % info.provider_partition, b"%d-1" % info.provider_partition)
        consumer = consumers(provider, group, [inner[1]])
        records = take(consumer, 2)
        assert [(one.partition, one.offset, one.data) for one in records] == [(1, 0, b"1-0"), (1, 1, b"1-1")]
        consumer.commit({inner[1].place: 2})
        places = [info.place for info in inner]
        assert provider.admin().committed_offsets({group: places}) == {group: {places[1]: 2}}

    def test_one_consumer_may_read_all_partitions_of_a_topic(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        for info in inner:
            send_all(provider, info, *[b"x"] * 400)
        consumer = consumers(provider, group, inner)
        records = take(consumer, 1_200)
        for number in range(3):
            assert [one.offset for one in records if one.partition == number] == list(range(400))
        places = [info.place for info in inner]
        consumer.commit({places[0]: 400, places[2]: 7})
        assert provider.admin().committed_offsets({group: places}) == {group: {places[0]: 400, places[2]: 7}}

    def test_a_partition_inside_a_topic_has_one_owner_too(
        self, open_provider: OpenProvider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, place = open_provider(), inner[1].place
        both = [consumers(provider, group, [inner[1]]), consumers(open_provider(), group, [inner[1]])]
        send_all(provider, inner[1], *[b"x"] * 5)
        accepted, holder = accept(both, place, 5)
        assert accepted == [0, 1, 2, 3, 4]
        holder.stop()
        both.remove(holder)
        send_all(provider, inner[1], *[b"y"] * 5)
        assert accept(both, place, 5) == ([5, 6, 7, 8, 9], both[0])

    def test_saying_that_it_works_takes_no_records(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1")
        consumer = consumers(provider, group, [info])
        take(consumer, 2)
        send_all(provider, info, b"2", b"3")
        for _ in range(3):
            consumer.keep_alive()
        assert [record.data for record in take(consumer, 2)] == [b"2", b"3"]
