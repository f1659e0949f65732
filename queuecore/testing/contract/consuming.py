"""What every provider promises to those who consume."""
# ruff: noqa: S101

from typing import Any

import pytest

from queuecore.errors import NotOwner, OffsetOutOfRange, QueueError, UnknownTopic
from queuecore.messages import Record
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.options import ConsumerOptions
from queuecore.testing.contract.kit import (
    POLL_MS,
    ContractKit,
    Heard,
    OpenProvider,
    Subscribe,
    create_topic,
    hold,
    new_name,
    place_of,
    places,
    send_all,
    take,
)
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class ConsumingContract(ContractKit):
    """Where a group begins, what a poll gives, and what a commit keeps."""

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

    def test_a_group_may_begin_at_the_end(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider(consuming=ConsumerOptions(auto_offset_reset="latest"))
        send_all(provider, info, b"old")
        consumer = consumers(provider, group, [info])
        hold({consumer: bool})

        def next_records() -> list[Record]:
            # When exactly a provider looks for the end is its own business, hence more than one.
            send_all(provider, info, b"new")
            return consumer.poll(POLL_MS)

        assert {record.data for record in wait_until(next_records)} == {b"new"}

    def test_a_consumer_says_what_it_is(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        consumer = provider.consumer(group, queue[0].topic)
        assert (consumer.topic, consumer.partitions, consumer.is_stopped) == (queue[0].topic, frozenset(), False)
        consumer.stop()
        assert consumer.is_stopped
        subscribed = consumers(provider, group, queue)
        assert subscribed.topic == ""
        hold({subscribed: set(places(queue)).__eq__})
        subscribed.stop()
        assert (subscribed.partitions, subscribed.is_stopped) == (frozenset(), True)
        subscribed.stop()

    def test_without_a_subscription_there_is_nothing_to_poll(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        consumer = provider.consumer(group)
        with pytest.raises(QueueError):
            consumer.poll(0)
        with pytest.raises(QueueError):
            consumer.subscribe()
        stopped = consumers(provider, group, [info])
        stopped.stop()
        with pytest.raises(QueueError):
            stopped.poll(0)
        with pytest.raises(QueueError):
            stopped.subscribe([info])

    def test_an_unknown_topic_cannot_be_subscribed_to(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str
    ) -> None:
        no_topic = TopicPartitionInfo("contract-there-is-no-such-topic", 0)
        no_partition = TopicPartitionInfo(inner[0].topic, 3, use_internal_partition=True)
        for info in (no_topic, no_partition):
            with pytest.raises(UnknownTopic):
                provider.consumer(group).subscribe([info])
        with pytest.raises(UnknownTopic):
            provider.consumer(group, "contract-there-is-no-such-topic").subscribe()

    def test_a_whole_topic_is_read_as_it_grows(self, provider: Provider, group: str, consumers: Subscribe) -> None:
        spec = TopicSpec(new_name())
        [first] = create_topic(provider, spec)
        consumer = consumers(provider, group, topic=spec.name)
        send_all(provider, first, b"first")
        assert [record.data for record in take(consumer, 1)] == [b"first"]
        provider.admin().alter_topics([TopicSpec(spec.name, partitions=2)])
        second = TopicPartitionInfo(spec.name, 1, use_internal_partition=True)
        send_all(provider, second, b"second")
        assert [record.data for record in take(consumer, 1)] == [b"second"]
        assert consumer.partitions == {first.place, second.place}

    def test_stopping_commits_nothing(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1")
        first = consumers(provider, group, [info])
        take(first, 2)
        first.stop()
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {}}
        assert len(take(consumers(provider, group, [info]), 2)) == 2

    def test_unsubscribing_and_subscribing_again_begins_at_the_commit_again(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1", b"2")
        consumer = consumers(provider, group, [info])
        take(consumer, 3)
        consumer.commit({info.place: 1})
        consumer.unsubscribe()
        consumer.subscribe([info])
        assert [record.data for record in take(consumer, 2)] == [b"1", b"2"]

    def test_subscribing_to_the_same_again_changes_nothing(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1")
        heard = Heard()
        consumer = consumers(provider, group, [info], listener=heard)
        take(consumer, 2)
        consumer.subscribe([info], heard)
        send_all(provider, info, b"2")
        assert [record.data for record in take(consumer, 1)] == [b"2"]
        consumer.commit()
        assert (heard.holds, heard.given_up, heard.gone) == (frozenset([info.place]), set(), set())
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 3}}

    def test_a_change_that_is_refused_leaves_what_was_subscribed(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0")
        consumer = consumers(provider, group, [info])
        take(consumer, 1)
        with pytest.raises(UnknownTopic):
            consumer.subscribe([TopicPartitionInfo("contract-there-is-no-such-topic", 0)])
        send_all(provider, info, b"1")
        assert [record.data for record in take(consumer, 1)] == [b"1"]

    def test_unsubscribing_releases_and_commits_nothing(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, queue[0], b"0")
        consumer = consumers(provider, group, [queue[0]])
        take(consumer, 1)
        consumer.unsubscribe()
        assert (consumer.partitions, consumer.is_stopped) == (frozenset(), False)
        with pytest.raises(QueueError):
            consumer.poll(0)
        with pytest.raises(NotOwner):
            consumer.commit({queue[0].place: 1})
        assert provider.admin().committed_offsets({group: [queue[0].place]}) == {group: {}}
        consumer.subscribe([queue[0]])
        assert len(take(consumer, 1)) == 1

    def test_one_poll_gives_a_pack_at_most(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider(consuming=ConsumerOptions(max_poll_records=100))
        send_all(provider, info, *[b"x"] * 350)
        consumer = consumers(provider, group, [info])
        packs: list[int] = []

        def all_came() -> bool:
            packs.append(len(consumer.poll(POLL_MS)))
            return sum(packs) >= 350

        wait_until(all_came)
        assert sum(packs) == 350
        assert max(packs) <= 100

    @pytest.mark.parametrize(("options", "wanted", "most"), [(100, 30, 30), (30, 100, 30)])
    def test_a_consumer_may_want_less_at_once_but_not_more(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, options: int, wanted: int, most: int
    ) -> None:
        provider = open_provider(consuming=ConsumerOptions(max_poll_records=options))
        send_all(provider, info, *[b"x"] * 150)
        consumer = provider.consumer(group, max_poll_records=wanted)
        packs: list[int] = []

        def all_came() -> bool:
            packs.append(len(consumer.poll(POLL_MS)))
            return sum(packs) >= 150

        try:
            consumer.subscribe([info])
            wait_until(all_came)
        finally:
            consumer.stop()
        assert max(packs) <= most

    def test_one_poll_gives_so_many_bytes_of_a_partition_or_one_record(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider(consuming=ConsumerOptions(max_partition_fetch_bytes=2_500))
        sizes = [1_000, 1_000, 1_000, 4_000, 500, 500, 500]
        for info in queue[:2]:
            send_all(provider, info, *map(bytes, sizes))
        consumer = consumers(provider, group, queue[:2])
        given: dict[ProviderPartition, list[int]] = {place: [] for place in places(queue[:2])}

        def all_came() -> bool:
            records = consumer.poll(POLL_MS)
            for place, so_far in given.items():
                pack = [one.size for one in records if place_of(one) == place]
                assert sum(pack) <= 2_500 or len(pack) == 1
                so_far += pack
            return all(len(so_far) >= len(sizes) for so_far in given.values())

        wait_until(all_came)
        assert given == dict.fromkeys(places(queue[:2]), sizes)

    def test_partitions_are_apart(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        for number, info in enumerate(queue):
            send_all(provider, info, b"%d-0" % number, b"%d-1" % number)
        consumer = consumers(provider, group, [queue[1]])
        records = take(consumer, 2)
        assert [(place_of(one), one.offset) for one in records] == [(queue[1].place, 0), (queue[1].place, 1)]
        assert [one.data for one in records] == [b"1-0", b"1-1"]
        consumer.commit({queue[1].place: 2})
        committed = provider.admin().committed_offsets({group: places(queue)})
        assert committed == {group: {queue[1].place: 2}}

    def test_one_consumer_may_read_all_partitions(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        for info in queue:
            send_all(provider, info, *[b"x"] * 400)
        consumer = consumers(provider, group, queue)
        records = take(consumer, 1_200)
        for place in places(queue):
            assert [one.offset for one in records if place_of(one) == place] == list(range(400))
        consumer.commit({queue[0].place: 400, queue[2].place: 7})
        committed = provider.admin().committed_offsets({group: places(queue)})
        assert committed == {group: {queue[0].place: 400, queue[2].place: 7}}

    def test_a_commit_of_everything_is_of_everything_polled(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, queue[0], b"0", b"1")
        send_all(provider, queue[1], b"0")
        consumer = consumers(provider, group, queue)
        take(consumer, 3)
        send_all(provider, queue[0], b"not polled")
        consumer.commit()
        committed = provider.admin().committed_offsets({group: places(queue)})
        assert committed == {group: {queue[0].place: 2, queue[1].place: 1}}

    def test_only_offsets_there_are_can_be_committed(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1")
        consumer = consumers(provider, group, [info])
        take(consumer, 2)
        consumer.commit({info.place: 1})
        not_whole: Any = 1.5
        for offset in (-5, not_whole, *([3] if self.knows_ends else [])):
            with pytest.raises(OffsetOutOfRange) as refused:
                consumer.commit({info.place: offset})
            assert not refused.value.retryable
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 1}}
        consumer.commit({info.place: 2})

    def test_a_paused_partition_gives_nothing_until_it_is_resumed(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        held, apart = queue[:2], queue[2]
        consumer = consumers(provider, group, held)
        hold({consumer: set(places(held)).__eq__})
        consumer.pause([held[0].place])
        send_all(provider, held[0], b"later")
        send_all(provider, held[1], b"now")
        assert [record.data for record in take(consumer, 1)] == [b"now"]
        assert consumer.poll(POLL_MS) == []
        assert consumer.partitions == set(places(held))
        consumer.resume([held[0].place])
        assert [record.data for record in take(consumer, 1)] == [b"later"]
        with pytest.raises(NotOwner):
            consumer.pause([apart.place])

    def test_a_consumer_may_go_to_any_offset_of_what_it_holds(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, queue[0], b"0", b"1", b"2", b"3")
        consumer = consumers(provider, group, [queue[0]])
        take(consumer, 4)
        consumer.seek(queue[0].place, 1)
        assert [record.data for record in take(consumer, 3)] == [b"1", b"2", b"3"]
        consumer.seek(queue[0].place, 3)
        assert [record.data for record in take(consumer, 1)] == [b"3"]
        with pytest.raises(NotOwner):
            consumer.seek(queue[1].place, 0)
        for offset in (-1, 5):
            with pytest.raises(OffsetOutOfRange):
                consumer.seek(queue[0].place, offset)
        consumer.seek(queue[0].place, 4)
        send_all(provider, queue[0], b"4")
        assert [record.data for record in take(consumer, 1)] == [b"4"]

    def test_going_to_an_offset_is_nothing_to_commit(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        send_all(provider, info, b"0", b"1", b"2")
        consumer = consumers(provider, group, [info])
        take(consumer, 3)
        consumer.commit()
        consumer.seek(info.place, 0)
        consumer.commit()
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 3}}

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
