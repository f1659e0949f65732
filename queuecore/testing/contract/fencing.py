"""What every provider promises to consumers whose partitions have epochs."""
# ruff: noqa: S101

import pytest

from queuecore.errors import ConfigurationError, NotOwner, QueueError, StaleEpoch
from queuecore.messages import QueueMessage
from queuecore.providers.base import Provider, QueueConsumer
from queuecore.testing.contract.kit import (
    POLL_MS,
    ContractKit,
    Heard,
    OpenProvider,
    Subscribe,
    place_of,
    places,
    read_all,
    send_all,
    take,
)
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

MEMBER = "partition-1"


class FencingContract(ContractKit):
    """After the first commit of an epoch, none of an earlier one takes effect."""

    def test_a_commit_leaves_its_epoch(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, (fenced, other, _) = open_provider(), queue
        send_all(provider, fenced, b"0", b"1")
        send_all(provider, other, b"0")
        consumer = consumers(provider, group, [fenced, other], epochs={fenced.place: 7})
        take(consumer, 3)
        assert provider.admin().committed_epochs({group: places(queue), "nobody": []}) == {group: {}, "nobody": {}}
        consumer.commit()
        consumer.unsubscribe()
        provider.close()
        admin = open_provider().admin()
        assert admin.committed_offsets({group: places(queue)}) == {group: {fenced.place: 2, other.place: 1}}
        assert admin.committed_epochs({group: places(queue)}) == {group: {fenced.place: 7}}

    @pytest.mark.parametrize("epoch", [7, 8], ids=["equal", "higher"])
    def test_the_same_epoch_and_a_higher_one_go_on(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe, epoch: int
    ) -> None:
        provider = open_provider()
        send_all(provider, info, b"0", b"1")
        self._commit_one(provider, info, group, 7)
        again = consumers(open_provider(), group, [info], epochs={info.place: epoch}, member_id=MEMBER)
        assert [record.offset for record in take(again, 1)] == [1]
        again.commit()
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 2}}
        assert provider.admin().committed_epochs({group: [info.place]}) == {group: {info.place: epoch}}

    def test_one_that_comes_late_under_an_older_epoch_gets_nothing_and_the_newer_goes_on(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider, heard = open_provider(), Heard()
        send_all(provider, info, b"0", b"1", b"2")
        newer = consumers(provider, group, [info], epochs={info.place: 2}, member_id=MEMBER)
        take(newer, 3)
        newer.commit({info.place: 1})
        late = consumers(open_provider(), group, [info], listener=heard, epochs={info.place: 1}, member_id=MEMBER)
        stale = _stale(late)
        assert stale.fields == {"group": group, "place": info.place, "epoch": 1, "newest": 2}
        assert (heard, late.partitions) == (Heard(), frozenset())
        assert late.poll(POLL_MS) == []
        with pytest.raises(NotOwner):
            late.commit({info.place: 3})

        newer.subscribe([info], epochs={info.place: 2})
        assert [record.data for record in take(newer, 2)] == [b"1", b"2"]
        newer.commit({info.place: 2})
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 2}}

    def test_a_commit_of_an_older_epoch_is_refused_whole(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, (info, other, _) = open_provider(), queue
        for one in (info, other):
            send_all(provider, one, b"0", b"1")
        both = {info.place: 1, other.place: 1}
        older = consumers(provider, group, [info, other], epochs=both, member_id=MEMBER)
        take(older, 4)
        newer = consumers(open_provider(), group, [info], epochs={info.place: 2}, member_id=MEMBER)
        take(newer, 2)
        newer.commit({info.place: 1})
        with pytest.raises(StaleEpoch if self.compares_epochs else NotOwner):
            older.commit({info.place: 2, other.place: 2})
        assert provider.admin().committed_offsets({group: both}) == {group: {info.place: 1}}
        assert provider.admin().committed_epochs({group: both}) == {group: {info.place: 2}}

    def test_a_transaction_of_an_older_epoch_takes_no_effect(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, (info, out, _) = open_provider(), queue
        if not provider.capabilities.transactions:
            pytest.skip("this provider has no transactions")
        send_all(provider, info, b"0", b"1")
        older = consumers(provider, group, [info], epochs={info.place: 1}, member_id=MEMBER)
        take(older, 2)
        newer_provider = open_provider()
        newer = consumers(newer_provider, group, [info], epochs={info.place: 2}, member_id=MEMBER)
        take(newer, 2)
        with newer_provider.transactional_producer(f"{group}-newer").begin() as transaction:
            transaction.send(out, QueueMessage(None, b"newer"))
            transaction.commit_offsets(newer, {info.place: 1})
        # A transaction that is committed may take a moment to be seen by who asks for offsets.
        wait_until(lambda: provider.admin().committed_epochs({group: [info.place]}) == {group: {info.place: 2}})
        older_producer = provider.transactional_producer(f"{group}-older")
        transaction = older_producer.begin()
        transaction.send(out, QueueMessage(None, b"older"))
        with pytest.raises(StaleEpoch if self.compares_epochs else QueueError):
            transaction.commit_offsets(older, {info.place: 2})
        older_producer.stop()
        assert read_all(provider, out.place) == [b"newer"]
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 1}}

    def test_an_epoch_that_gets_old_in_the_middle_of_a_transaction_undoes_it(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, (info, out, _) = open_provider(), queue
        if not self.compares_epochs:
            pytest.skip("here the next owner waits for the transaction, or ends it")
        send_all(provider, info, b"0", b"1")
        older = consumers(provider, group, [info], epochs={info.place: 1}, member_id=MEMBER)
        take(older, 2)
        producer = provider.transactional_producer(group)
        transaction = producer.begin()
        transaction.send(out, QueueMessage(None, b"older"))
        transaction.commit_offsets(older, {info.place: 2})
        newer = consumers(open_provider(), group, [info], epochs={info.place: 2}, member_id=MEMBER)
        take(newer, 2)
        newer.commit({info.place: 1})
        with pytest.raises(StaleEpoch):
            transaction.commit()
        producer.stop()
        assert read_all(provider, out.place) == []
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 1}}

    def test_of_several_partitions_only_the_stale_ones_are_dropped(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        provider, heard = open_provider(), Heard()
        for info in queue:
            send_all(provider, info, b"0", b"1")
        for info in queue[:2]:
            self._commit_one(provider, info, group, 9)
        late = consumers(provider, group, queue, listener=heard, epochs=dict.fromkeys(places(queue), 8))
        stale = {_stale(late).fields["place"] for _ in range(2)}
        assert stale == set(places(queue[:2]))
        assert [place_of(record) for record in take(late, 2)] == [queue[2].place] * 2
        assert late.partitions == heard.holds == {queue[2].place}
        assert heard.given_up == set()
        late.subscribe(queue, heard, dict.fromkeys(places(queue), 10))
        records = take(late, 4)
        assert {(place_of(one), one.offset) for one in records} == {
            *((info.place, 1) for info in queue[:2]),
            *((queue[2].place, offset) for offset in range(2)),
        }

    def test_a_new_epoch_gives_the_partition_anew_and_no_other(
        self, open_provider: OpenProvider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        class Notes(Heard):
            consumer: QueueConsumer

            def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
                super().revoked(partitions)
                self.consumer.commit(dict.fromkeys(partitions, 1))

        provider, heard, (anew, stays, _) = open_provider(), Notes(), queue
        for info in (anew, stays):
            send_all(provider, info, b"0", b"1")
        epochs = {anew.place: 1, stays.place: 1}
        consumer = heard.consumer = consumers(provider, group, [anew, stays], listener=heard, epochs=epochs)
        take(consumer, 4)
        consumer.subscribe([anew, stays], heard, epochs | {anew.place: 2})
        assert [(place_of(one), one.offset) for one in take(consumer, 1)] == [(anew.place, 1)]
        assert provider.admin().committed_epochs({group: [anew.place]}) == {group: {anew.place: 1}}
        consumer.commit()
        assert provider.admin().committed_epochs({group: epochs}) == {group: {anew.place: 2, stays.place: 1}}
        assert (heard.holds, heard.given_up, heard.gone) == (frozenset(epochs), {anew.place}, set())

    def test_offsets_altered_by_hand_keep_the_epoch(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider()
        send_all(provider, info, b"0", b"1")
        self._commit_one(provider, info, group, 3)
        admin = provider.admin()
        wait_until(lambda: not admin.groups()[group].members)
        admin.alter_group_offsets(group, {info.place: 0})
        assert admin.committed_epochs({group: [info.place]}) == {group: {info.place: 3}}
        _stale(consumers(provider, group, [info], epochs={info.place: 2}, member_id=MEMBER))

    def test_who_has_no_epoch_is_not_fenced(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        provider = open_provider()
        send_all(provider, info, b"0", b"1")
        self._commit_one(provider, info, group, 3)
        free = consumers(provider, group, [info], member_id=MEMBER)
        take(free, 1)
        free.commit()
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 2}}
        if self.compares_epochs:
            assert provider.admin().committed_epochs({group: [info.place]}) == {group: {info.place: 3}}

    def test_offsets_that_are_forgotten_take_their_epoch_with_them(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str
    ) -> None:
        provider = open_provider()
        send_all(provider, info, b"0")
        self._commit_one(provider, info, group, 3)
        admin = provider.admin()
        wait_until(lambda: not admin.groups()[group].members)
        admin.delete_group_offsets(group, [info.place])
        assert admin.committed_epochs({group: [info.place]}) == {group: {}}

    def test_an_epoch_is_a_whole_number_of_a_partition_that_is_asked_for(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str
    ) -> None:
        consumer = provider.consumer(group, queue[0].full_topic_name)
        one, other = places(queue[:2])
        for infos, epochs in ((queue[:1], {one: -1}), (queue[:1], {other: 1}), (None, {one: 1})):
            with pytest.raises(ConfigurationError):
                consumer.subscribe(infos, epochs=epochs)

    def _commit_one(self, provider: Provider, info: TopicPartitionInfo, group: str, epoch: int) -> None:
        """Have the first message done under this epoch, by one that leaves."""
        consumer = provider.consumer(group, member_id=MEMBER)
        try:
            consumer.subscribe([info], epochs={info.place: epoch})
            take(consumer, 1)
            consumer.commit({info.place: 1})
            consumer.unsubscribe()
        finally:
            consumer.stop()


def _stale(consumer: QueueConsumer) -> StaleEpoch:
    """What it hears on being given a partition; no record comes before."""
    with pytest.raises(StaleEpoch) as heard:
        wait_until(lambda: consumer.poll(POLL_MS))
    return heard.value
