"""What every provider promises to members that are known again, by an id of their own."""
# ruff: noqa: S101

from collections.abc import Mapping

import pytest

from queuecore.errors import Displaced, InvalidName, NotOwner
from queuecore.providers.base import Provider
from queuecore.providers.options import ConsumerOptions
from queuecore.testing.contract.kit import POLL_MS, ContractKit, Heard, OpenProvider, Subscribe, hold, send_all, take
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

# Longer than any test waits, as Kafka allows it.
LONG_SESSION_MS = 120_000


class DisplacingContract(ContractKit):
    """Who comes with the id of another takes its place, and that one hears of it."""

    def test_who_joins_with_the_same_member_id_takes_the_place_at_once(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        consuming = ConsumerOptions(session_timeout_ms=LONG_SESSION_MS)
        provider, heard = open_provider(consuming=consuming), Heard()
        send_all(provider, info, b"0", b"1")
        older = consumers(provider, group, [info], listener=heard, member_id="one")
        take(older, 2)
        newer = consumers(open_provider(consuming=consuming), group, [info], member_id="one")
        assert [record.data for record in take(newer, 2)] == [b"0", b"1"]
        newer.commit({info.place: 1})
        with pytest.raises(Displaced, match="'one'"):
            older.commit({info.place: 2})
        with pytest.raises(Displaced, match="'one'"):
            wait_until(lambda: older.poll(POLL_MS))
        assert (heard.gone, heard.given_up, older.partitions) == ({info.place}, set(), frozenset())
        newer.poll(POLL_MS)
        with pytest.raises(Displaced, match="'one'"):
            older.poll(POLL_MS)
        newer.commit({info.place: 2})
        assert provider.admin().committed_offsets({group: [info.place]}) == {group: {info.place: 2}}

    def test_a_displaced_consumer_may_take_its_place_back(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        consuming = ConsumerOptions(session_timeout_ms=LONG_SESSION_MS)
        provider = open_provider(consuming=consuming)
        older = consumers(provider, group, [info], member_id="one")
        hold({older: bool})
        newer = consumers(open_provider(consuming=consuming), group, [info], member_id="one")
        hold({newer: bool})
        older.subscribe([info])
        hold({older: bool})
        with pytest.raises(Displaced):
            wait_until(lambda: newer.poll(POLL_MS))

    def test_a_displaced_consumer_hears_of_it_though_the_other_is_gone(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        if not self.remembers_displaced:
            pytest.skip("here one whose place is free again before it noticed takes it by itself")
        provider, heard = open_provider(), Heard()
        send_all(provider, info, b"0")
        older = consumers(provider, group, [info], listener=heard, member_id="one")
        take(older, 1)
        newer = consumers(open_provider(), group, [info], member_id="one")
        newer.unsubscribe()
        with pytest.raises(Displaced):
            older.commit({info.place: 1})
        for _ in range(2):
            with pytest.raises(Displaced):
                wait_until(lambda: older.poll(POLL_MS))
        assert (heard.gone, heard.given_up, older.partitions) == ({info.place}, set(), frozenset())
        older.subscribe([info])
        assert [record.data for record in take(older, 1)] == [b"0"]
        older.commit({info.place: 1})

    def test_one_that_loses_its_partitions_otherwise_is_not_displaced(
        self, open_provider: OpenProvider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        if self.short_session_ms is None:
            pytest.skip("here a consumer that only stops polling lives for longer than a test can wait")
        consuming = ConsumerOptions(session_timeout_ms=self.short_session_ms)
        provider = open_provider(consuming=consuming)
        send_all(provider, info, b"0")
        silent = consumers(provider, group, [info], member_id="one")
        take(silent, 1)
        other = consumers(open_provider(consuming=consuming), group, [info], member_id="other")
        take(other, 1)
        with pytest.raises(NotOwner) as refused:
            silent.commit({info.place: 1})
        assert type(refused.value) is NotOwner

    def test_a_member_that_is_known_again_gets_its_partitions_and_the_others_keep_theirs(
        self, open_provider: OpenProvider, group: str, consumers: Subscribe
    ) -> None:
        provider, heard = open_provider(), Heard()
        infos = self.create_queue(provider, 4)
        other = consumers(provider, group, infos, listener=heard, member_id="other")
        older = consumers(provider, group, infos, member_id="one")
        hold({other: _two, older: _two})
        before, given_up = older.partitions, set(heard.given_up)
        newer = consumers(open_provider(), group, infos, member_id="one")
        hold({other: _two, newer: _two})
        assert newer.partitions == before
        assert (heard.given_up, heard.gone) == (given_up, set())

    def test_a_member_id_is_free_when_its_consumer_has_unsubscribed(
        self, provider: Provider, info: TopicPartitionInfo, group: str, consumers: Subscribe
    ) -> None:
        first = consumers(provider, group, [info], member_id="one")
        hold({first: bool})
        first.unsubscribe()
        wait_until(lambda: not _members(provider, group))
        second = consumers(provider, group, [info], member_id="another")
        hold({second: bool})

    def test_a_member_id_that_kafka_would_not_take_is_refused(self, provider: Provider, group: str) -> None:
        for member_id in ("", "with space", ".", "x" * 250):
            with pytest.raises(InvalidName):
                provider.consumer(group, member_id=member_id)


def _members(provider: Provider, group: str) -> Mapping[str, frozenset[ProviderPartition]]:
    found = provider.admin().groups().get(group)
    return {} if found is None else found.members


def _two(partitions: frozenset[ProviderPartition]) -> bool:
    return len(partitions) == 2
