"""What every provider promises to those who send."""
# ruff: noqa: S101

import threading
import time
from collections.abc import Mapping
from contextlib import closing
from uuid import UUID

import pytest

from queuecore.errors import InvalidMessage, PayloadTooLarge, ProviderUnavailable, QueueError, UnknownTopic
from queuecore.messages import UNKNOWN_OFFSET, Key, QueueMessage, RecordMetadata
from queuecore.providers.base import Brief, Provider, QueueProducer, TopicSpec
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send
from queuecore.testing.contract.kit import (
    Answers,
    ContractKit,
    OpenProvider,
    Subscribe,
    create_topic,
    new_name,
    read_all,
    send_all,
    send_messages,
    settle,
    take,
)
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo


class SendingContract(ContractKit):
    """Answers, order, and what a bad message does to the others: nothing."""

    def test_a_send_is_answered_with_its_place_and_rising_offsets(
        self, provider: Provider, info: TopicPartitionInfo
    ) -> None:
        before_ms = time.time_ns() // 1_000_000
        stored = send_all(provider, info, b"a", b"b", b"c")
        after_ms = time.time_ns() // 1_000_000
        assert [one.offset for one in stored] == [0, 1, 2]
        assert {(one.topic, one.partition) for one in stored} == {info.place}
        assert all(before_ms <= one.timestamp_ms <= after_ms for one in stored)

    def test_a_producer_knows_the_topic_it_was_made_for(self, provider: Provider, producer: QueueProducer) -> None:
        assert producer.default_topic == ""
        assert provider.producer("tb_core").default_topic == "tb_core"

    def test_what_need_not_outlive_the_machine_is_stored_and_answered_all_the_same(
        self, provider: Provider, producer: QueueProducer, info: TopicPartitionInfo
    ) -> None:
        passing = provider.producer("elsewhere", lasting=False)
        assert passing.default_topic == "elsewhere"
        offsets = [send(one, info, QueueMessage(b"key", b"x")).result(DEADLINE_S).offset for one in (passing, producer)]
        assert offsets == [0, 1]
        passing.stop()
        assert read_all(provider, info.place) == [b"x", b"x"]

    def test_without_acknowledgements_nobody_knows_the_offset(
        self, open_provider: OpenProvider, info: TopicPartitionInfo
    ) -> None:
        provider = open_provider(producing=ProducerOptions(acks="0"))
        [answer] = send_all(provider, info, b"x")
        assert (answer.topic, answer.partition, answer.offset) == (*info.place, UNKNOWN_OFFSET)
        assert wait_until(lambda: read_all(provider, info.place)) == [b"x"]

    def test_each_callback_runs_once_and_on_the_producers_thread(
        self, producer: QueueProducer, info: TopicPartitionInfo
    ) -> None:
        unknown = TopicPartitionInfo("contract-there-is-no-such-topic", 0)
        good, too_large, lost = Answers(), Answers(), Answers()
        producer.send(info, QueueMessage(None, b"good"), good)
        producer.send(info, QueueMessage(None, bytes(2 * 1024 * 1024)), too_large)
        producer.send(unknown, QueueMessage(None, b"lost"), lost)
        assert producer.flush(DEADLINE_S)
        producer.stop()
        assert [len(answers.given) for answers in (good, too_large, lost)] == [1, 1, 1]
        assert threading.get_ident() not in good.threads | too_large.threads | lost.threads

    def test_many_handed_in_together_keep_their_order_and_are_answered_each(
        self, provider: Provider, producer: QueueProducer, info: TopicPartitionInfo, inner: list[TopicPartitionInfo]
    ) -> None:
        payloads = [b"%d" % number for number in range(300)]
        answers = [Answers() for _ in payloads]
        targets = [info if number % 3 else inner[0] for number in range(300)]
        producer.send_many(
            [(to, QueueMessage(b"key", data), told) for to, data, told in zip(targets, payloads, answers, strict=True)]
        )
        assert producer.flush(DEADLINE_S)
        assert [len(told.given) for told in answers] == [1] * 300
        for place in (info, inner[0]):
            assert read_all(provider, place.place) == [
                data for to, data in zip(targets, payloads, strict=True) if to == place
            ]

    def test_of_many_a_bad_one_fails_its_own_callback_only(
        self, producer: QueueProducer, info: TopicPartitionInfo
    ) -> None:
        unknown = TopicPartitionInfo("contract-there-is-no-such-topic", 0)
        good, too_large, lost, last = Answers(), Answers(), Answers(), Answers()
        producer.send_many(
            [
                (info, QueueMessage(b"key", b"good"), good),
                (info, QueueMessage(b"key", bytes(2 * 1024 * 1024)), too_large),
                (unknown, QueueMessage(b"key", b"lost"), lost),
                (info, QueueMessage(b"key", b"last"), last),
            ]
        )
        assert producer.flush(DEADLINE_S)
        errors = [[type(error) for _, error in told.given] for told in (good, too_large, lost, last)]
        assert errors == [[type(None)], [PayloadTooLarge], [UnknownTopic], [type(None)]]

    def test_who_does_not_ask_for_the_place_is_told_of_success_and_of_errors(
        self, producer: QueueProducer, info: TopicPartitionInfo
    ) -> None:
        told: list[tuple[str, QueueError | None]] = []

        def tell(name: str, error: QueueError | None) -> None:
            told.append((name, error))

        missing = TopicPartitionInfo(new_name())
        good, lost = QueueMessage(None, b"good"), QueueMessage(None, b"lost")
        producer.send(info, good, Brief((tell, "alone")))
        producer.send_many([(info, good, Brief((tell, "together"))), (missing, lost, Brief((tell, "missing")))])
        assert producer.flush(DEADLINE_S)
        errors = dict(told)
        assert len(told) == 3
        assert errors["alone"] is errors["together"] is None
        assert isinstance(errors["missing"], UnknownTopic)

    def test_many_are_told_that_the_producer_has_been_stopped(
        self, producer: QueueProducer, info: TopicPartitionInfo
    ) -> None:
        producer.stop()
        answers = [Answers(), Answers()]
        producer.send_many([(info, QueueMessage(b"key", b"x"), told) for told in answers])
        assert [[type(error) for _, error in told.given] for told in answers] == [[ProviderUnavailable]] * 2

    def test_a_callback_that_raises_harms_nobody_else(self, producer: QueueProducer, info: TopicPartitionInfo) -> None:
        def broken(_metadata: RecordMetadata | None, _error: QueueError | None) -> None:
            raise RuntimeError("a bug of the caller's")

        producer.send(info, QueueMessage(None, b"first"), broken)
        assert send(producer, info, QueueMessage(None, b"second")).result(DEADLINE_S).offset == 1

    def test_an_unknown_topic_fails_its_own_callback_only(
        self, producer: QueueProducer, info: TopicPartitionInfo, inner: list[TopicPartitionInfo]
    ) -> None:
        no_topic = TopicPartitionInfo("contract-there-is-no-such-topic", 0)
        no_partition = TopicPartitionInfo(inner[0].topic, 3, use_internal_partition=True)
        targets = [info, no_topic, no_partition, info]
        errors = settle([send(producer, target, QueueMessage(None, b"x")) for target in targets])
        assert [type(error) for error in errors] == [type(None), UnknownTopic, UnknownTopic, type(None)]

    def test_a_topic_that_is_created_later_is_found(self, provider: Provider, producer: QueueProducer) -> None:
        info = TopicPartitionInfo(new_name(), 0)
        assert type(settle([send(producer, info, QueueMessage(None, b"early"))])[0]) is UnknownTopic
        provider.admin().create_topics([TopicSpec(info.full_topic_name)])
        wait_until(lambda: settle([send(producer, info, QueueMessage(None, b"late"))]) == [None])

    def test_a_message_that_is_too_large_fails_its_own_callback_only(
        self, open_provider: OpenProvider, info: TopicPartitionInfo
    ) -> None:
        producer = open_provider(producing=ProducerOptions(max_request_size=100_000)).producer()
        sizes = [1, 100_001, 99_000]
        errors = settle([send(producer, info, QueueMessage(None, bytes(size))) for size in sizes])
        assert [type(error) for error in errors] == [type(None), PayloadTooLarge, type(None)]

    def test_a_message_that_cannot_be_encoded_fails_its_own_callback_only(
        self, producer: QueueProducer, info: TopicPartitionInfo
    ) -> None:
        headers: list[Mapping[str, bytes]] = [{}, {"\udc80": b"a lone surrogate"}, {}]
        errors = settle([send(producer, info, QueueMessage(None, b"x", one)) for one in headers])
        assert [type(error) for error in errors] == [type(None), InvalidMessage, type(None)]

    def test_flush_returns_when_every_callback_has_run(self, producer: QueueProducer, info: TopicPartitionInfo) -> None:
        answers = [Answers() for _ in range(200)]
        for one in answers:
            producer.send(info, QueueMessage(None, b"x"), one)
        assert producer.flush(DEADLINE_S)
        assert all(len(one.given) == 1 for one in answers)

    def test_stop_answers_what_was_sent_and_refuses_what_comes_later(
        self, producer: QueueProducer, info: TopicPartitionInfo
    ) -> None:
        answers = [Answers() for _ in range(200)]
        for one in answers:
            producer.send(info, QueueMessage(None, b"x"), one)
        producer.stop()
        assert all(len(one.given) == 1 and one.given[0][1] is None for one in answers)
        with pytest.raises(ProviderUnavailable, match="stopped"):
            producer.send(info, QueueMessage(None, b"too late"), Answers())
        assert producer.flush(DEADLINE_S)
        producer.stop()

    @pytest.mark.parametrize(
        "key", [UUID("784f394c-42b6-435a-983c-b7beff2784f9"), b"device-7", b"", b"\x00\xff" * 18, None], ids=repr
    )
    def test_key_headers_and_data_come_back_unchanged(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe, key: Key
    ) -> None:
        headers = {"ts": b"\x00\x00\x01\x8b\xcf\xe5h\x00", "größe": b"", "producerId": b"here"}
        message = QueueMessage(key, b"\x00\xff data", headers)
        metadata = send(provider.producer(), info, message).result(DEADLINE_S)
        [record] = take(consumers(provider, group, [info]), 1)
        assert (record.key, dict(record.headers), record.data) == (key, headers, message.data)
        place = (metadata.topic, metadata.partition, metadata.offset, metadata.timestamp_ms)
        assert (record.topic, record.partition, record.offset, record.timestamp_ms) == place

    def test_a_message_may_be_empty(self, provider: Provider, info: TopicPartitionInfo) -> None:
        send_all(provider, info, b"")
        with closing(provider.reader()) as reader:
            [record] = reader.read(info.place, 0, 10)
        assert (record.key, dict(record.headers), record.data) == (None, {}, b"")

    def test_a_tombstone_comes_back_as_one(self, provider: Provider, info: TopicPartitionInfo) -> None:
        send_messages(provider, info, QueueMessage.tombstone(b"device-7"), QueueMessage(b"device-7", b""))
        with closing(provider.reader()) as reader:
            tombstone, empty = reader.read(info.place, 0, 10)
        assert (tombstone.key, tombstone.data, tombstone.is_tombstone) == (b"device-7", b"", True)
        assert (empty.data, empty.is_tombstone) == (b"", False)

    def test_a_compacted_topic_has_the_last_message_of_each_key(self, provider: Provider) -> None:
        """Compaction may have run or not; what a reader ends up with is the same."""
        if not provider.capabilities.compaction:
            pytest.skip("this provider does not compact")
        [info] = create_topic(provider, TopicSpec(new_name(), cleanup="compact"))
        changes = [QueueMessage(b"device-%d" % (number % 10), b"%d" % number) for number in range(2_000)]
        send_messages(provider, info, *changes, QueueMessage.tombstone(b"device-3"))
        state: dict[Key, bytes] = {}
        with closing(provider.reader()) as reader:
            at = 0
            while records := reader.read(info.place, at, 1_000):
                state.update({record.key: b"deleted" if record.is_tombstone else record.data for record in records})
                at = records[-1].offset + 1
        left = {b"device-%d" % number: b"%d" % (1_990 + number) for number in range(10)}
        assert state == {**left, b"device-3": b"deleted"}

    def test_a_compacted_topic_refuses_a_message_without_a_key(self, provider: Provider) -> None:
        if not provider.capabilities.compaction:
            pytest.skip("this provider does not compact")
        [info] = create_topic(provider, TopicSpec(new_name(), cleanup="compact"))
        producer = provider.producer()
        errors = settle([send(producer, info, QueueMessage(key, b"x")) for key in (b"a", None, b"b")])
        assert [type(error) for error in errors] == [type(None), InvalidMessage, type(None)]

    def test_a_partition_keeps_its_order(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        sent = [str(number).encode() for number in range(1_200)]
        send_all(provider, info, *sent)
        records = take(consumers(provider, group, [info]), len(sent))
        assert [record.data for record in records] == sent
        assert [record.offset for record in records] == list(range(len(sent)))
