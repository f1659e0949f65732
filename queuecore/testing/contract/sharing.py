"""What every provider promises to the members of a group."""
# ruff: noqa: S101

from collections.abc import Mapping

import pytest

from queuecore.errors import NotOwner
from queuecore.providers.base import Provider, QueueConsumer, TopicSpec
from queuecore.providers.options import ConsumerOptions, Strategy
from queuecore.testing.contract.kit import (
    POLL_MS,
    ContractKit,
    Heard,
    OpenProvider,
    Subscribe,
    accept,
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

NUMBERS: Mapping[Strategy, list[set[int]]] = {"range": [{0, 1}, {2, 3}], "round_robin": [{0, 2}, {1, 3}]}


class SharingContract(ContractKit):
    """Who holds which partition, and what becomes of what is not done when one moves."""

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

    def test_one_consumer_of_a_group_gets_each_record_and_the_other_takes_over(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider()
        both = [consumers(provider, group, [info]), consumers(open_provider(), group, [info])]
        send_all(provider, info, *[b"x"] * 5)
        accepted = accept(both, 5)
        send_all(provider, info, *[b"y"] * 5)
        accepted += accept(both, 5)
        assert [record.offset for _, record in accepted] == list(range(10))

        holder = accepted[-1][0]
        holder.stop()
        both.remove(holder)
        send_all(provider, info, *[b"z"] * 5)
        assert [(who, record.offset) for who, record in accept(both, 5)] == [(both[0], at) for at in range(10, 15)]

    def test_members_share_partitions_and_one_that_goes_leaves_its_to_the_other(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider()
        infos = self.create_queue(provider, 4)
        everything = set(places(infos))
        heard, heard_too = Heard(), Heard()
        first = consumers(provider, group, infos, listener=heard)
        hold({first: everything.__eq__})
        second = consumers(open_provider(), group, infos, listener=heard_too)
        hold({first: _two, second: _two})
        assert first.partitions | second.partitions == everything
        assert (heard.holds, heard_too.holds) == (first.partitions, second.partitions)

        for info in infos:
            send_all(provider, info, *[b"%d" % number for number in range(25)])
        accepted = accept([first, second], 100)
        assert {who for who, _ in accepted} == {first, second}
        for info in infos:
            offsets = [one.offset for _, one in accepted if place_of(one) == info.place]
            assert offsets == list(range(25))

        first.stop()
        hold({second: everything.__eq__})
        assert heard_too.holds == everything
        committed = provider.admin().committed_offsets({group: everything})
        assert committed == {group: dict.fromkeys(everything, 25)}

    @pytest.mark.parametrize("strategy", NUMBERS)
    def test_a_group_divides_its_partitions_by_its_strategy(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe, strategy: Strategy
    ) -> None:
        provider = open_provider(consuming=ConsumerOptions(strategy=strategy))
        if not provider.capabilities.group_strategies:
            pytest.skip("this provider divides partitions in its own way")
        topic = new_name()
        create_topic(provider, TopicSpec(topic, partitions=4))
        both = [consumers(provider, group, topic=topic), consumers(provider, group, topic=topic)]
        hold(dict.fromkeys(both, _two))
        held = sorted([{place.partition for place in consumer.partitions} for consumer in both], key=min)
        assert held == NUMBERS[strategy]

    def test_what_is_revoked_can_still_be_committed(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        class CommitsInTime(Heard):
            consumer: QueueConsumer

            def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
                super().revoked(partitions)
                self.consumer.commit(dict.fromkeys(partitions, 2))

        provider, listener = open_provider(), CommitsInTime()
        for info in queue:
            send_all(provider, info, b"0", b"1")
        first = listener.consumer = consumers(provider, group, queue, listener=listener)
        take(first, 6)
        second = consumers(open_provider(), group, queue)
        hold({first: bool, second: bool})
        [moved] = second.partitions
        assert moved in listener.given_up
        assert provider.admin().committed_offsets({group: [moved]}) == {group: {moved: 2}}

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
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, info = open_provider(), queue[0]
        send_all(provider, info, b"0", b"1")
        owner = consumers(provider, group, [info])
        take(owner, 2)
        with pytest.raises(NotOwner):
            owner.commit({info.place: 2, queue[1].place: 0})
        other = consumers(open_provider(), group, [info])
        with pytest.raises(NotOwner):
            other.commit({info.place: 2})
        owner.stop()
        with pytest.raises(NotOwner):
            owner.commit({info.place: 2})
        assert provider.admin().committed_offsets({group: places(queue)}) == {group: {}}

    def test_one_that_was_silent_for_too_long_has_lost_its_partitions(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        if self.short_session_ms is None:
            pytest.skip("here a consumer that only stops polling lives for longer than a test can wait")
        consuming = ConsumerOptions(session_timeout_ms=self.short_session_ms)
        provider, heard = open_provider(consuming=consuming), Heard()
        send_all(provider, info, b"0", b"1")
        silent = consumers(provider, group, [info], listener=heard)
        take(silent, 2)
        other = consumers(open_provider(consuming=consuming), group, [info])
        assert [record.data for record in take(other, 2)] == [b"0", b"1"]
        with pytest.raises(NotOwner):
            silent.commit({info.place: 2})
        with pytest.raises(NotOwner):
            silent.commit()
        other.commit({info.place: 1})
        wait_until(lambda: silent.poll(POLL_MS) or heard.gone)
        assert (heard.gone, heard.given_up, silent.partitions) == ({info.place}, set(), frozenset())
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 1}}

    def test_work_from_before_a_loss_cannot_be_committed_when_the_partition_is_back(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        if self.short_session_ms is None:
            pytest.skip("here a consumer that only stops polling lives for longer than a test can wait")
        if not self.knows_work_from_before:
            pytest.skip("this provider takes any offset of what a consumer holds")
        consuming = ConsumerOptions(session_timeout_ms=self.short_session_ms)
        provider = open_provider(consuming=consuming)
        send_all(provider, info, *[b"x"] * 20)
        silent = consumers(provider, group, [info])
        take(silent, 20)
        other = consumers(open_provider(consuming=consuming), group, [info])
        take(other, 20)
        other.commit({info.place: 18})
        other.stop()
        assert [record.offset for record in take(silent, 2)] == [18, 19]
        with pytest.raises(NotOwner):
            silent.commit({info.place: 3})
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 18}}
        silent.commit({info.place: 19})
        silent.seek(info.place, 2)
        silent.commit({info.place: 3})
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 3}}


def _two(partitions: frozenset[ProviderPartition]) -> bool:
    return len(partitions) == 2
