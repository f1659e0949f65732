"""What every provider promises to those who send and commit together."""
# ruff: noqa: S101

from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

import pytest

from queuecore.errors import (
    InvalidMessage,
    NotOwner,
    NotSupported,
    PayloadTooLarge,
    ProducerFenced,
    QueueError,
    UnknownTopic,
)
from queuecore.messages import QueueMessage
from queuecore.providers.base import Provider, TransactionalProducer
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.testing.contract.kit import ContractKit, OpenProvider, Subscribe, places, read_all, send_all, take
from queuecore.testing.waiting import wait_until
from queuecore.topics import TopicPartitionInfo

Infos = list[TopicPartitionInfo]


class _ABug(Exception):
    pass


class TransactionsContract(ContractKit):
    """All or nothing. Offsets may be missing where a transaction was: only data is compared here."""

    @pytest.fixture
    def transactional_id(self, provider: Provider) -> str:
        if not provider.capabilities.transactions:
            pytest.skip("this provider has no transactions")
        return f"contract-{uuid4().hex[:12]}"

    @pytest.fixture
    def transactional(self, provider: Provider, transactional_id: str) -> Iterator[TransactionalProducer]:
        producer = provider.transactional_producer(transactional_id)
        yield producer
        producer.stop()

    def test_a_provider_says_whether_it_has_transactions(self, provider: Provider) -> None:
        if provider.capabilities.transactions:
            provider.transactional_producer("contract-anyone").stop()
        else:
            with pytest.raises(NotSupported):
                provider.transactional_producer("contract-anyone")

    def test_what_will_be_refused_can_be_seen_without_a_transaction(
        self, transactional: TransactionalProducer, info: TopicPartitionInfo
    ) -> None:
        limit = ProducerOptions().max_request_size
        transactional.check(info, QueueMessage(b"key", b"x"))
        with pytest.raises(PayloadTooLarge):
            transactional.check(info, QueueMessage(None, bytes(limit + 1)))
        with pytest.raises(InvalidMessage):
            transactional.check(info, QueueMessage(None, b"x", {"lone \ud800 surrogate": b""}))

    def test_who_read_up_to_the_end_has_seen_all_whatever_transaction_is_open(
        self, provider: Provider, transactional: TransactionalProducer, info: TopicPartitionInfo
    ) -> None:
        def read_whole() -> list[bytes]:
            """What is there; nothing while some of it is hidden."""
            with closing(provider.reader()) as reader:
                [end] = provider.admin().end_offsets([info.place]).values()
                found = reader.read(info.place, 0, 100)
                return [record.data for record in found] if reader.position(info.place) >= end else []

        with transactional.begin() as transaction:
            for _ in range(4):
                transaction.send(info, QueueMessage(None, bytes(ProducerOptions().max_request_size // 2)))
            send_all(provider, info, b"beside it")
            assert read_whole() in ([], [b"beside it"])
            transaction.abort()
        assert wait_until(read_whole) == [b"beside it"]

    def test_messages_and_offsets_take_effect_together(
        self,
        provider: Provider,
        transactional: TransactionalProducer,
        info: TopicPartitionInfo,
        queue: Infos,
        group: str,
        consumers: Subscribe,
    ) -> None:
        send_all(provider, info, b"0", b"1", b"2")
        consumer = consumers(provider, group, [info])
        take(consumer, 3)
        with transactional.begin() as transaction:
            for target in queue:
                transaction.send(target, QueueMessage(b"key", b"a", {"producerId": b"here"}))
                transaction.send(target, QueueMessage(None, b"b"))
            transaction.commit_offsets(consumer, {info.place: 2})
            assert [read_all(provider, place) for place in places(queue)] == [[], [], []]
            assert provider.admin().committed_offsets({group: [info.place]}) == {group: {}}
        wait_until(lambda: all(read_all(provider, place) == [b"a", b"b"] for place in places(queue)))
        wait_until(lambda: provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 2}})
        with closing(provider.reader()) as reader:
            [first, _] = reader.read(queue[0].place, 0, 2)
        assert (first.key, dict(first.headers)) == (b"key", {"producerId": b"here"})

    def test_what_is_aborted_was_never_there(
        self,
        provider: Provider,
        transactional: TransactionalProducer,
        info: TopicPartitionInfo,
        queue: Infos,
        group: str,
        consumers: Subscribe,
    ) -> None:
        send_all(provider, info, b"0")
        consumer = consumers(provider, group, [info])
        take(consumer, 1)

        def fail() -> None:
            with transactional.begin() as transaction:
                transaction.send(queue[0], QueueMessage(None, b"left by an exception"))
                transaction.commit_offsets(consumer, {info.place: 1})
                raise _ABug

        with pytest.raises(_ABug):
            fail()
        with transactional.begin() as transaction:
            transaction.send(queue[0], QueueMessage(None, b"aborted by hand"))
            transaction.abort()
        send_all(provider, queue[0], b"sent without a transaction")
        with transactional.begin() as transaction:
            transaction.send(queue[0], QueueMessage(None, b"committed"))
        reading = consumers(provider, f"{group}-reading", queue)
        expected = [b"sent without a transaction", b"committed"]
        assert [record.data for record in take(reading, 2)] == expected
        assert read_all(provider, queue[0].place) == expected
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {}}

    def test_a_message_that_cannot_be_stored_undoes_its_transaction(
        self, provider: Provider, transactional: TransactionalProducer, info: TopicPartitionInfo
    ) -> None:
        transaction = transactional.begin()
        transaction.send(info, QueueMessage(None, b"good"))
        transaction.send(TopicPartitionInfo("contract-there-is-no-such-topic", 0), QueueMessage(None, b"lost"))
        with pytest.raises(UnknownTopic):
            transaction.commit()
        with transactional.begin() as transaction:
            transaction.send(info, QueueMessage(None, b"next"))
        assert wait_until(lambda: read_all(provider, info.place)) == [b"next"]

    def test_only_the_owner_may_commit_offsets_in_a_transaction(
        self,
        provider: Provider,
        transactional: TransactionalProducer,
        info: TopicPartitionInfo,
        queue: Infos,
        group: str,
        consumers: Subscribe,
    ) -> None:
        send_all(provider, info, b"0")
        consumer = consumers(provider, group, [info])
        take(consumer, 1)
        transaction = transactional.begin()
        transaction.send(queue[0], QueueMessage(None, b"of a consumer that has stopped"))
        consumer.stop()
        with pytest.raises(NotOwner):
            transaction.commit_offsets(consumer, {info.place: 1})
        transaction.abort()
        with transactional.begin() as transaction:
            transaction.send(queue[0], QueueMessage(None, b"next"))
        assert wait_until(lambda: read_all(provider, queue[0].place)) == [b"next"]
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {}}

    def test_one_transaction_commits_offsets_of_several_partitions(
        self,
        provider: Provider,
        transactional: TransactionalProducer,
        info: TopicPartitionInfo,
        queue: Infos,
        group: str,
        consumers: Subscribe,
    ) -> None:
        for number, source in enumerate(queue):
            send_all(provider, source, b"%d-0" % number, b"%d-1" % number)
        consumer = consumers(provider, group, queue)
        records = take(consumer, 6)
        with transactional.begin() as transaction:
            for record in records:
                transaction.send(info, QueueMessage(None, record.data))
            transaction.commit_offsets(consumer, {queue[0].place: 2})
            transaction.commit_offsets(consumer, {queue[1].place: 2, queue[2].place: 1})
        copied = wait_until(lambda: read_all(provider, info.place))
        assert sorted(copied) == [b"0-0", b"0-1", b"1-0", b"1-1", b"2-0", b"2-1"]
        expected = {queue[0].place: 2, queue[1].place: 2, queue[2].place: 1}
        wait_until(lambda: provider.admin().committed_offsets({group: places(queue)}) == {group: expected})

    @pytest.mark.parametrize("member_id", ["reader", None], ids=["displaced", "silent for too long"])
    def test_the_transaction_of_a_consumer_that_lost_its_partition_takes_no_effect(
        self,
        open_provider: OpenProvider,
        transactional: TransactionalProducer,
        info: TopicPartitionInfo,
        queue: Infos,
        group: str,
        consumers: Subscribe,
        member_id: str | None,
    ) -> None:
        if self.short_session_ms is None:
            pytest.skip("here a consumer that only stops polling lives for longer than a test can wait")
        provider = open_provider(consuming=ConsumerOptions(session_timeout_ms=self.short_session_ms))
        send_all(provider, info, b"0", b"1")
        older = consumers(provider, group, [info], member_id=member_id)
        take(older, 2)
        newer = consumers(provider, group, [info], member_id=member_id)
        take(newer, 2)
        newer.commit({info.place: 1})

        def commit_too_late() -> None:
            with transactional.begin() as transaction:
                transaction.send(queue[0], QueueMessage(None, b"of the displaced"))
                transaction.commit_offsets(older, {info.place: 2})

        with pytest.raises(NotOwner):
            commit_too_late()
        with transactional.begin() as transaction:
            transaction.send(queue[0], QueueMessage(None, b"next"))
        assert wait_until(lambda: read_all(provider, queue[0].place)) == [b"next"]
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 1}}

    def test_a_transaction_may_be_larger_than_the_buffer(
        self, open_provider: OpenProvider, transactional_id: str, info: TopicPartitionInfo
    ) -> None:
        size = ProducerOptions().max_request_size
        provider = open_provider(producing=ProducerOptions(buffer_memory=size))
        producer = provider.transactional_producer(transactional_id)
        data = [b"%d" % number + bytes(size // 4) for number in range(16)]
        with producer.begin() as transaction:
            for one in data:
                transaction.send(info, QueueMessage(None, one))
        assert wait_until(lambda: read_all(provider, info.place)) == data
        producer.stop()

    def test_there_is_one_transaction_at_a_time_and_it_ends_once(self, transactional: TransactionalProducer) -> None:
        transaction = transactional.begin()
        with pytest.raises(QueueError):
            transactional.begin()
        transaction.commit()
        with pytest.raises(QueueError):
            transaction.commit()
        transactional.begin().abort()

    def test_stopping_aborts_what_is_open(
        self, open_provider: OpenProvider, transactional_id: str, info: TopicPartitionInfo
    ) -> None:
        provider = open_provider()
        producer = provider.transactional_producer(transactional_id)
        transaction = producer.begin()
        transaction.send(info, QueueMessage(None, b"open"))
        producer.stop()
        with pytest.raises(QueueError):
            transaction.commit()
        with pytest.raises(QueueError):
            producer.begin()
        send_all(provider, info, b"next")
        assert wait_until(lambda: read_all(provider, info.place)) == [b"next"]

    def test_a_newer_producer_of_the_same_id_fences_the_older(
        self, open_provider: OpenProvider, transactional_id: str, info: TopicPartitionInfo
    ) -> None:
        provider = open_provider()
        older = provider.transactional_producer(transactional_id)
        left_open = older.begin()
        left_open.send(info, QueueMessage(None, b"left open"))
        newer = open_provider().transactional_producer(transactional_id)
        with newer.begin() as transaction:
            transaction.send(info, QueueMessage(None, b"newer"))
        with pytest.raises(ProducerFenced):
            left_open.commit()
        with pytest.raises(ProducerFenced):
            older.begin()
        with newer.begin() as transaction:
            transaction.send(info, QueueMessage(None, b"newer still"))
        assert wait_until(lambda: read_all(provider, info.place)) == [b"newer", b"newer still"]
        older.stop()
        newer.stop()
