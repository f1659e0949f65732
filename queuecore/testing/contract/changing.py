"""What every provider promises to a consumer that changes what it is subscribed to."""
# ruff: noqa: S101

from queuecore.providers.base import QueueConsumer
from queuecore.testing.contract.kit import (
    POLL_MS,
    ContractKit,
    Heard,
    OpenProvider,
    Subscribe,
    hold,
    place_of,
    places,
    send_all,
    take,
)
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class CommitsInTime(Heard):
    """Commits what is revoked, as done up to 2."""

    consumer: QueueConsumer

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        super().revoked(partitions)
        self.consumer.commit(dict.fromkeys(partitions, 2))


class ChangingContract(ContractKit):
    """What stays wanted goes on as if nothing had happened."""

    def test_a_change_takes_what_is_new_and_gives_up_what_is_not_wanted(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, heard = open_provider(), CommitsInTime()
        first, stays, comes = queue
        for info in queue:
            send_all(provider, info, b"0", b"1")
        consumer = heard.consumer = consumers(provider, group, [first, stays], listener=heard)
        take(consumer, 4)
        consumer.subscribe([stays, comes], heard)
        send_all(provider, stays, b"2")
        records = take(consumer, 3)
        assert sorted((place_of(one), one.offset) for one in records) == sorted(
            [(stays.place, 2), (comes.place, 0), (comes.place, 1)]
        )
        assert consumer.partitions == heard.holds == set(places([stays, comes]))
        assert (heard.given_up, heard.gone) == ({first.place}, set())
        consumer.commit()
        committed = provider.admin().committed_offsets({group: places(queue)})
        assert committed == {group: {first.place: 2, stays.place: 3, comes.place: 2}}

    def test_what_is_wanted_again_begins_at_its_commit(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, heard = open_provider(), CommitsInTime()
        leaves, stays = queue[:2]
        send_all(provider, leaves, *[b"x"] * 3)
        consumer = heard.consumer = consumers(provider, group, [leaves, stays], listener=heard)
        take(consumer, 3)
        consumer.subscribe([stays], heard)
        hold({consumer: {stays.place}.__eq__})
        send_all(provider, leaves, b"3")
        assert consumer.poll(POLL_MS) == []
        consumer.subscribe([stays, leaves], heard)
        assert [(place_of(one), one.offset) for one in take(consumer, 2)] == [(leaves.place, 2), (leaves.place, 3)]
        assert (heard.given_up, heard.gone) == ({leaves.place}, set())

    def test_another_listener_hears_what_changes_from_then_on(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        before, after = Heard(), Heard()
        consumer = consumers(open_provider(), group, queue[:2], listener=before)
        hold({consumer: set(places(queue[:2])).__eq__})
        consumer.subscribe(queue[1:], after)
        hold({consumer: set(places(queue[1:])).__eq__})
        assert (before.holds, before.given_up) == (frozenset(places(queue[:2])), set())
        assert (after.holds, after.given_up, after.gone) == (frozenset([queue[2].place]), {queue[0].place}, set())

    def test_a_pause_outlasts_a_change(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider()
        paused, other, comes = queue
        consumer = consumers(provider, group, [paused, other])
        hold({consumer: set(places([paused, other])).__eq__})
        consumer.pause([paused.place])
        consumer.subscribe(queue)
        for info in queue:
            send_all(provider, info, b"0")
        assert {place_of(one) for one in take(consumer, 2)} == {other.place, comes.place}
        assert consumer.poll(POLL_MS) == []
        consumer.resume([paused.place])
        assert [place_of(one) for one in take(consumer, 1)] == [paused.place]

    def test_a_pause_ends_when_the_partition_is_given_up(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, (paused, stays, _) = open_provider(), queue
        consumer = consumers(provider, group, [paused, stays])
        hold({consumer: set(places([paused, stays])).__eq__})
        consumer.pause([paused.place])
        consumer.subscribe([stays])
        hold({consumer: {stays.place}.__eq__})
        consumer.subscribe([paused, stays])
        send_all(provider, paused, b"0")
        assert [place_of(one) for one in take(consumer, 1)] == [paused.place]

    def test_what_one_gives_up_another_may_take(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe
    ) -> None:
        """Partitions that are topics of their own: members of a group on Kafka want the same ones of a topic."""
        if self.use_internal_partition:
            return
        provider, heard = open_provider(), Heard()
        infos = self.create_queue(provider, 3)
        one = consumers(provider, group, infos[:2], listener=heard)
        other = consumers(open_provider(), group, infos[2:])
        hold({one: set(places(infos[:2])).__eq__, other: {infos[2].place}.__eq__})
        one.subscribe(infos[:1], heard)
        other.subscribe(infos[1:])
        hold({one: {infos[0].place}.__eq__, other: set(places(infos[1:])).__eq__})
        assert (heard.given_up, heard.gone) == ({infos[1].place}, set())

    def test_who_subscribes_again_hears_what_it_has_lost_meanwhile(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider, heard = open_provider(), Heard()
        send_all(provider, info, b"0")
        older = consumers(provider, group, [info], listener=heard, member_id="one")
        take(older, 1)
        newer = consumers(open_provider(), group, [info], member_id="one")
        take(newer, 1)
        newer.commit()
        older.subscribe([info], heard)
        send_all(provider, info, b"1")
        assert [record.offset for record in take(older, 1)] == [1]
        assert (heard.holds, heard.given_up, heard.gone) == (frozenset([info.place]), set(), {info.place})
