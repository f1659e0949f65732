"""Groups on Kafka: what its two protocols have in common, and what is each one's own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from queuecore.errors import ConfigurationError, NotOwner, ProviderUnavailable, UnknownTopic
from queuecore.providers.base import Provider, QueueConsumer, TopicSpec
from queuecore.providers.kafka import assignment
from queuecore.providers.kafka.assignment import Assignment
from queuecore.providers.kafka.consumer import KafkaConsumer
from queuecore.providers.options import ConsumerOptions, Strategy
from queuecore.testing.contract import OpenProvider
from queuecore.testing.contract.changing import ChangingContract
from queuecore.testing.contract.consuming import ConsumingContract
from queuecore.testing.contract.kit import (
    POLL_MS,
    Heard,
    Subscribe,
    create_topic,
    hold,
    new_name,
    place_of,
    places,
    send_all,
    take,
)
from queuecore.testing.contract.sharing import SharingContract
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.contract.kafka import KafkaKit


@contextmanager
def _polling(consumer: QueueConsumer) -> Iterator[None]:
    """A thread that polls meanwhile, as another process would."""
    enough = threading.Event()

    def poll() -> None:
        while not enough.is_set():
            consumer.poll(POLL_MS)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


class TestGroups(KafkaKit):
    """Whoever divides the partitions. The default strategy is incremental: a rebalance touches only what moves."""

    @pytest.fixture
    def answered(self, monkeypatch: pytest.MonkeyPatch) -> set[Assignment]:
        """Members that have heard what they get. A listener is not told where that is nothing."""
        members: set[Assignment] = set()

        class Watched(Assignment):
            def assigned(self, client: Consumer, partitions: list[TopicPartition]) -> None:
                super().assigned(client, partitions)
                members.add(self)

        monkeypatch.setattr("queuecore.providers.kafka.membership.Assignment", Watched)
        return members

    def test_a_topic_that_the_library_misses_may_be_there(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        """Told to read another topic, it may complain of what it has not asked the brokers for yet: seldom enough that
        it is done here in its place."""
        consumer = consumers(provider, group, [info])
        assert isinstance(consumer, KafkaConsumer)
        member, missed = consumer._membership, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        assert member is not None
        member._receive([Message(topic=info.full_topic_name, error=missed)])
        send_all(provider, info, b"0")
        take(consumer, 1)
        member._receive([Message(topic="contract-there-is-no-such-topic", error=missed)])
        with pytest.raises(UnknownTopic):
            consumer.poll(POLL_MS)

    def test_a_topic_that_the_library_left_out_is_read(
        self, provider: Provider, queue: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        """Without a broker to ask just when it is told of another topic, it joins without that: seldom enough that it
        is done here in its place."""
        heard, [stays, left_out, _] = Heard(), queue
        consumer = consumers(provider, group, [stays, left_out], listener=heard)
        assert isinstance(consumer, KafkaConsumer)
        hold({consumer: {stays.place, left_out.place}.__eq__})
        member = consumer._membership
        assert member is not None
        given, missed = member._assignment, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        member._client.subscribe([stays.full_topic_name], on_assign=given.assigned, on_revoke=given.revoked)
        hold({consumer: {stays.place}.__eq__})
        member._receive([Message(topic=left_out.full_topic_name, error=missed)])
        hold({consumer: {stays.place, left_out.place}.__eq__})
        assert (heard.given_up, heard.gone) == ({left_out.place}, set())

    def test_a_member_that_nobody_displaced_joins_again(
        self,
        provider: Provider,
        info: TopicPartitionInfo,
        group: str,
        consumers: Subscribe,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The library may take it for displaced when the brokers were away for as long as a session: seldom enough that
        it is done here in its place."""
        heard, refused = Heard(), KafkaError(KafkaError.FENCED_INSTANCE_ID)
        send_all(provider, info, b"0", b"1")
        consumer = consumers(provider, group, [info], listener=heard, member_id="one")
        assert isinstance(consumer, KafkaConsumer)
        take(consumer, 2)
        monkeypatch.setattr(consumer._membership, "_try_commit", lambda _: refused)
        with pytest.raises(ProviderUnavailable, match="joins again with its next poll"):
            consumer.commit()
        assert [record.data for record in take(consumer, 2)] == [b"0", b"1"]
        assert heard.gone == {info.place}
        consumer.commit()
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 2}}

    def test_who_keeps_a_partition_does_not_notice_a_rebalance(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe
    ) -> None:
        provider, heard = open_provider(), Heard()
        infos = create_topic(provider, TopicSpec(new_name(), partitions=4))
        first = consumers(provider, group, infos, listener=heard)
        hold({first: lambda held: len(held) == 4})
        second = consumers(open_provider(), group, infos)
        with _polling(second):
            while len(second.partitions) < 2:
                first.poll(POLL_MS)
                first.commit(dict.fromkeys(first.partitions, 0))
        assert heard.given_up == second.partitions
        assert (heard.holds, heard.gone) == (first.partitions, set())

    def test_a_member_that_holds_nothing_leaves_at_once(
        self,
        open_provider: OpenProvider,
        info: TopicPartitionInfo,
        group: str,
        consumers: Subscribe,
        answered: set[Assignment],
    ) -> None:
        options = ConsumerOptions(session_timeout_ms=60_000)
        provider = open_provider(consuming=options)
        both = [consumers(provider, group, [info]), consumers(open_provider(consuming=options), group, [info])]

        def one_holds_it() -> bool:
            for consumer in both:
                consumer.poll(POLL_MS)
            found = provider.admin().groups().get(group)
            held = sorted(map(len, found.members.values())) if found else []
            # In the other protocol a member that gets nothing is not told so.
            have_heard = self.group_protocol == "consumer" or len(answered) == 2
            return held == [0, 1] and any(one.partitions for one in both) and have_heard

        wait_until(one_holds_it)
        holder, idle = sorted(both, key=lambda one: len(one.partitions), reverse=True)
        idle.stop()
        wait_until(lambda: holder.poll(POLL_MS) or len(provider.admin().groups()[group].members) == 1, timeout=20)

    def test_a_pause_outlasts_signs_of_life(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        consumer = consumers(provider, group, inner)
        hold({consumer: set(places(inner)).__eq__})
        consumer.pause([inner[0].place])
        consumer.keep_alive()
        send_all(provider, inner[0], b"later")
        send_all(provider, inner[1], b"now")
        assert [record.data for record in take(consumer, 1)] == [b"now"]
        assert consumer.poll(POLL_MS) == []
        consumer.resume([inner[0].place])
        assert [record.data for record in take(consumer, 1)] == [b"later"]

    def test_a_listener_may_choose_where_to_begin(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        class Chooser(Heard):
            consumer: QueueConsumer

            def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
                for place in partitions:
                    self.consumer.seek(place, 2)

        for info in inner:
            send_all(provider, info, b"0", b"1", b"2")
        chooser = Chooser()
        chooser.consumer = consumers(provider, group, inner, listener=chooser)
        assert {(one.partition, one.data) for one in take(chooser.consumer, 3)} == {(n, b"2") for n in range(3)}

    def test_a_listener_that_fails_ends_the_poll_alone(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        class Broken(Heard):
            def assigned(self, partitions: object) -> None:
                raise RuntimeError("a bug of the caller's")

        send_all(provider, info, b"0")
        consumer = consumers(provider, group, [info], listener=Broken())
        with pytest.raises(RuntimeError, match="a bug"):
            wait_until(lambda: consumer.poll(POLL_MS))
        assert [record.data for record in take(consumer, 1)] == [b"0"]

    def test_one_that_was_put_out_commits_nothing_where_nobody_is_left(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        """The brokers would take offsets from anybody then."""
        consuming = ConsumerOptions(session_timeout_ms=self.short_session_ms)
        provider = open_provider(consuming=consuming)
        send_all(provider, info, b"0", b"1", b"2")
        silent = consumers(provider, group, [info])
        take(silent, 3)
        other = consumers(open_provider(consuming=consuming), group, [info])
        take(other, 3)
        other.commit({info.place: 2})
        other.stop()
        wait_until(lambda: not provider.admin().groups()[group].members)
        with pytest.raises(NotOwner):
            silent.commit({info.place: 1})
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 2}}


class TestClassicGroups(KafkaKit):
    """Groups whose members divide the partitions."""

    def test_a_member_with_another_strategy_or_an_impossible_session_is_refused(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        first = consumers(open_provider(), group, [info])
        hold({first: bool})
        for options in (ConsumerOptions(strategy="range"), ConsumerOptions(session_timeout_ms=1)):
            other = consumers(open_provider(consuming=options), group, [info])
            with pytest.raises(ConfigurationError):
                take(other, 1)

    @pytest.mark.parametrize("strategy", ["range", "round_robin"])
    def test_without_an_incremental_strategy_a_change_gives_all_anew(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe, strategy: Strategy
    ) -> None:
        class CommitsInTime(Heard):
            consumer: QueueConsumer

            def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
                super().revoked(partitions)
                self.consumer.commit(dict.fromkeys(partitions, 1))

        provider, heard = open_provider(consuming=ConsumerOptions(strategy=strategy)), CommitsInTime()
        for infos in (create_topic(provider, TopicSpec(new_name(), partitions=3)), self.create_queue(provider, 3)):
            for info in infos:
                send_all(provider, info, b"0", b"1")
            heard.consumer = consumers(provider, f"{group}-{infos[0].topic}", infos[:2], listener=heard)
            take(heard.consumer, 4)
            heard.consumer.subscribe(infos[1:], heard)
            records = take(heard.consumer, 3)
            assert sorted((place_of(one), one.offset) for one in records) == [
                (infos[1].place, 1), (infos[2].place, 0), (infos[2].place, 1)
            ]  # fmt: skip
            assert heard.given_up == set(places(infos[:2]))
            heard.given_up.clear()

    def test_a_partition_is_not_read_before_its_epoch_could_be_compared(
        self,
        open_provider: OpenProvider,
        info: TopicPartitionInfo,
        group: str,
        consumers: Subscribe,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        provider, heard, refusals = open_provider(), Heard(), [1, 2]
        read_kept = assignment.read_kept

        def refuse(*arguments: Any) -> Any:
            if refusals:
                refusals.pop()
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            return read_kept(*arguments)

        monkeypatch.setattr(assignment, "read_kept", refuse)
        send_all(provider, info, b"0", b"1")
        consumer = consumers(provider, group, [info], listener=heard, epochs={info.place: 2})
        wait_until(lambda: consumer.poll(0) or len(refusals) == 1)
        assert heard == Heard()
        assert [record.offset for record in take(consumer, 2)] == [0, 1]
        assert (heard.holds, refusals) == ({info.place}, [])
        consumer.commit()
        assert provider.admin().committed_epochs({group: [info.place]}) == {group: {info.place: 2}}


class TestBrokersDivide(TestGroups, ConsumingContract, SharingContract, ChangingContract):
    """Groups whose partitions the brokers divide (KIP-848)."""

    group_protocol = "consumer"

    @pytest.mark.parametrize("strategy", ["range"])
    def test_a_group_divides_its_partitions_by_its_strategy(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe, strategy: Strategy
    ) -> None:
        super().test_a_group_divides_its_partitions_by_its_strategy(open_provider, group, consumers, strategy)

    def test_a_strategy_the_brokers_do_not_have_is_refused(self, open_provider: OpenProvider) -> None:
        with pytest.raises(ConfigurationError, match="range, sticky"):
            open_provider(consuming=ConsumerOptions(strategy="round_robin"))

    def test_who_has_a_member_id_shares_with_those_who_have_none(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        """It keeps to the classic protocol; the brokers let a group have both."""
        known = consumers(provider, group, inner, member_id="one")
        hold({known: set(places(inner)).__eq__})
        other = consumers(provider, group, inner)
        hold({known: bool, other: bool})
        assert known.partitions | other.partitions == set(places(inner))
