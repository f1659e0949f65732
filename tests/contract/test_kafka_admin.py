"""Administering what only Kafka has: copies, leaders, settings of others, groups of both protocols."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from io import StringIO

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic, ResourceType
from django.core.management import call_command

from queueapi.management.commands import offsets
from queuecore.errors import ConfigurationError, GroupActive, InvalidName
from queuecore.groups.lag import Standing, read_standings
from queuecore.groups.resetting import AtTime, Earliest, Latest, Shifted, apply_reset, plan_reset
from queuecore.providers.base import DAY_MS, Provider, QueueAdmin, TopicDescription, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.kafka.settings import FRAMING_BYTES
from queuecore.providers.options import DEFAULT_PRODUCING, KafkaOptions
from queuecore.testing.contract.kit import Subscribe, create_topic, new_name, places, send_all, take
from queuecore.testing.services import KafkaCluster, KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.contract.kafka import KafkaKit
from tests.services import running

MANY_GROUPS = 300


@pytest.fixture(scope="module")
def theirs(kafka_service: KafkaService) -> AdminClient:
    """Another administrator of the same broker."""
    return AdminClient({"bootstrap.servers": kafka_service.bootstrap_servers})


def own_settings(client: AdminClient, topic: str) -> dict[str, str]:
    """Those that were set for the topic itself."""
    [future] = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    entries = future.result(DEADLINE_S)
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in entries.items() if entry.source == own}


def describe(admin: QueueAdmin, name: str) -> TopicDescription:
    return admin.describe_topics([name])[name]


class TestTopics(KafkaKit):
    def test_a_topic_gets_what_its_spec_says(self, provider: Provider, theirs: AdminClient) -> None:
        spec = TopicSpec(new_name(), 2, DAY_MS, 10_000_000, 2_000_000, "compact,delete", 1, 1)
        provider.admin().create_topics([spec])
        assert provider.admin().topics()[spec.name] == spec
        assert own_settings(theirs, spec.name) == {
            "retention.ms": str(DAY_MS),
            "retention.bytes": "10000000",
            "segment.bytes": "2000000",
            "cleanup.policy": "compact,delete",
            "min.insync.replicas": "1",
            "max.message.bytes": str(DEFAULT_PRODUCING.max_request_size + FRAMING_BYTES),
        }

    def test_more_copies_than_brokers_are_refused_with_their_number(self, provider: Provider) -> None:
        with pytest.raises(ConfigurationError, match=r"create topic .*only 1 broker\(s\)"):
            provider.admin().create_topics([TopicSpec(new_name(), replication_factor=2)])

    def test_more_required_than_there_are_is_refused(self, provider: Provider) -> None:
        wanted = TopicSpec(new_name(), replication_factor=2, min_insync_replicas=3)
        with pytest.raises(ConfigurationError, match="min_insync_replicas is 3, and with a replication_factor of 2"):
            provider.admin().create_topics([TopicSpec(new_name()), wanted])

    def test_names_that_kafka_takes_for_the_same_are_refused(self, provider: Provider) -> None:
        admin, name = provider.admin(), new_name()
        with pytest.raises(InvalidName, match=rf"'{name}\.a' and '{name}_a'"):
            admin.create_topics([TopicSpec(f"{name}.a"), TopicSpec(f"{name}_a")])
        admin.create_topics([TopicSpec(f"{name}.a")])
        with pytest.raises(InvalidName, match=rf"'{name}\.a' and '{name}_a'"):
            admin.create_topics([TopicSpec(f"{name}.b"), TopicSpec(f"{name}_a")])
        assert [one for one in admin.topics() if one.startswith(name)] == [f"{name}.a"]

    def test_only_what_differs_is_set(self, provider: Provider, theirs: AdminClient) -> None:
        admin, name = provider.admin(), new_name()
        for future in theirs.create_topics([NewTopic(name, 1, 1, config={"max.message.bytes": "5000000"})]).values():
            future.result(DEADLINE_S)
        there = wait_until(lambda: admin.topics().get(name))
        admin.alter_topics([there])
        assert own_settings(theirs, name) == {"max.message.bytes": "5000000"}
        admin.alter_topics([replace(there, retention_ms=DAY_MS, replication_factor=None, min_insync_replicas=None)])
        wait_until(lambda: own_settings(theirs, name).get("retention.ms") == str(DAY_MS))
        assert own_settings(theirs, name) == {"max.message.bytes": "5000000", "retention.ms": str(DAY_MS)}

    def test_a_setting_the_brokers_refuse_is_told_with_their_reason(self, provider: Provider) -> None:
        admin, spec = provider.admin(), TopicSpec(new_name())
        admin.create_topics([spec])
        with pytest.raises(ConfigurationError, match=rf"alter topic {spec.name}: .*segment\.bytes"):
            admin.alter_topics([replace(spec, segment_bytes=2**40)])

    def test_a_description_tells_the_leader_the_copies_and_the_size(self, provider: Provider) -> None:
        infos = create_topic(provider, TopicSpec(new_name(), 2))
        send_all(provider, infos[1], bytes(10_000))
        empty, full = describe(provider.admin(), infos[0].topic).partitions
        assert (full.leader, full.replicas, full.in_sync, full.is_under_replicated) == (1, (1,), (1,), False)
        assert (empty.size_bytes, empty.leader) == (0, 1)
        assert 10_000 < (full.size_bytes or 0) < 11_000


class TestGroups(KafkaKit):
    def test_many_groups_are_asked_about_at_once(self, provider: Provider, inner: list[TopicPartitionInfo]) -> None:
        admin, [zero, one, _] = provider.admin(), places(inner)
        names = [f"{new_name()}-{number}" for number in range(MANY_GROUPS)]
        for number, name in enumerate(names[:10]):
            admin.alter_group_offsets(name, {zero: number, one: 0})
        found = admin.committed_offsets(dict.fromkeys(names, (zero, one)))
        assert found == {name: {zero: number, one: 0} if number < 10 else {} for number, name in enumerate(names)}
        assert set(names[:10]) <= admin.groups().keys()

    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_members_of_either_protocol_are_shown(
        self,
        provider: Provider,
        inner: list[TopicPartitionInfo],
        group: str,
        kafka_service: KafkaService,
        protocol: str,
    ) -> None:
        admin = provider.admin()
        settings = {
            "bootstrap.servers": kafka_service.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
        }
        with closing(Consumer(settings)) as consumer:
            consumer.subscribe([inner[0].topic])
            wait_until(lambda: consumer.poll(0.05) or len(consumer.assignment()) == 3)
            [held] = wait_until(lambda: admin.groups()[group].members).values()
            assert held == set(places(inner))
            with pytest.raises(GroupActive):
                admin.alter_group_offsets(group, {inner[0].place: 0})
            with pytest.raises(GroupActive):
                admin.delete_group_offsets(group, [inner[0].place])
        wait_until(lambda: group not in admin.groups())
        admin.alter_group_offsets(group, {inner[0].place: 0})
        assert admin.committed_offsets({group: [inner[0].place]}) == {group: {inner[0].place: 0}}

    def test_threads_may_ask_at_the_same_time_and_nothing_is_left_running(
        self, inner: list[TopicPartitionInfo], kafka_service: KafkaService
    ) -> None:
        before = set(threading.enumerate())
        found: list[object] = []
        with closing(KafkaProvider(kafka_service.bootstrap_servers)) as provider:
            admin = provider.admin()
            ask = [threading.Thread(target=lambda: found.append(admin.end_offsets(places(inner)))) for _ in range(8)]
            for thread in ask:
                thread.start()
            for thread in ask:
                thread.join(DEADLINE_S)
        assert found == [dict.fromkeys(places(inner), 0)] * 8
        assert set(threading.enumerate()) <= before
        assert admin.end_offsets(places(inner)) == found[0]
        assert set(threading.enumerate()) <= before


class TestResetting(KafkaKit):
    def test_a_group_is_planned_for_and_then_reset(
        self, provider: Provider, inner: list[TopicPartitionInfo], group: str, consumers: Subscribe
    ) -> None:
        admin, [zero, one, two] = provider.admin(), places(inner)
        stored = send_all(provider, inner[0], b"0", b"1", b"2", b"3")
        consumer = consumers(provider, group, inner)
        take(consumer, 4)
        consumer.commit()
        nowhere = ProviderPartition(new_name(), 0)
        assert read_standings(admin, {group: [zero, nowhere]}) == {group: {zero: Standing(0, 4, 4)}}
        plan = plan_reset(admin, group, [zero], AtTime(stored[0].timestamp_ms))
        assert [(move.offset, move.repeated) for move in plan.moves] == [(0, 4)]
        with pytest.raises(GroupActive):
            apply_reset(admin, plan)

        consumer.stop()
        wait_until(lambda: not admin.groups()[group].members)
        apply_reset(admin, plan)
        assert admin.committed_offsets({group: [zero]}) == {group: {zero: 0}}
        for target, offset in ((Latest(before=1), 3), (Shifted(-1), 2), (Earliest(), 0)):
            apply_reset(admin, plan_reset(admin, group, [zero], target))
            assert admin.committed_offsets({group: [zero]}) == {group: {zero: offset}}
        assert [move.skipped for move in plan_reset(admin, group, [one, two], Latest()).moves] == [None, None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    yield from running(KafkaCluster(tmp_path_factory.mktemp("cluster")))


@pytest.fixture
def replicated(cluster: KafkaCluster) -> Iterator[Provider]:
    options = KafkaOptions(replication_factor=3, min_insync_replicas=2, request_timeout_ms=60_000)
    with closing(KafkaProvider(cluster.bootstrap_servers, kafka=options)) as provider:
        yield provider


class TestCluster:
    """Three brokers, each in a rack of its own."""

    def test_a_topic_has_the_copies_that_it_or_the_provider_says(self, replicated: Provider) -> None:
        admin, plain, own = replicated.admin(), TopicSpec(new_name()), TopicSpec(new_name(), 1, replication_factor=2)
        admin.create_topics([plain, own])
        assert admin.topics()[plain.name] == replace(plain, replication_factor=3, min_insync_replicas=2)
        assert admin.topics()[own.name] == replace(own, replication_factor=2, min_insync_replicas=2)
        [partition] = describe(admin, plain.name).partitions
        assert sorted(partition.replicas) == sorted(partition.in_sync) == [1, 2, 3]
        assert partition.leader == partition.replicas[0]

    def test_copies_can_be_added_and_taken_away(self, replicated: Provider) -> None:
        admin, spec = replicated.admin(), TopicSpec(new_name(), 3, replication_factor=1, min_insync_replicas=1)
        [info, *_] = create_topic(replicated, spec)
        send_all(replicated, info, b"kept")
        leaders = [one.leader for one in describe(admin, spec.name).partitions]
        for copies, required in ((3, 2), (1, 1)):
            wanted = replace(spec, replication_factor=copies, min_insync_replicas=required)
            admin.alter_topics([wanted])
            partitions = describe(admin, spec.name).partitions
            assert [len(one.in_sync) for one in partitions] == [copies] * 3
            assert [one.leader for one in partitions] == leaders
            wait_until(lambda wanted=wanted: admin.topics()[spec.name] == wanted)
        assert admin.end_offsets([info.place]) == {info.place: 1}
        with pytest.raises(ConfigurationError, match="cannot have 4 replicas on 3 brokers; start more brokers"):
            admin.alter_topics([replace(spec, replication_factor=4, retention_ms=DAY_MS)])
        assert admin.topics()[spec.name].retention_ms == spec.retention_ms

    def test_a_topic_is_described_while_nobody_leads_a_partition(
        self, cluster: KafkaCluster, replicated: Provider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(offsets, "provider", lambda: replicated)
        admin = replicated.admin()
        alone, safe = TopicSpec(new_name(), 3, replication_factor=1, min_insync_replicas=1), TopicSpec(new_name())
        admin.alter_group_offsets("readers", dict.fromkeys(places(create_topic(replicated, alone)), 0))
        create_topic(replicated, safe)
        lost = next(one.place for one in describe(admin, alone.name).partitions if one.leader == 2)
        cluster.brokers[2].kill()
        try:
            found = wait_until(lambda: _leaderless(describe(admin, alone.name)), timeout=120)
            assert [(one.place, one.beginning, one.end, one.size_bytes) for one in found] == [(lost, None, None, None)]
            assert [(one.replicas, one.is_under_replicated) for one in found] == [((2,), True)]
            [partition] = describe(admin, safe.name).partitions
            assert (set(partition.replicas), set(partition.in_sync)) == ({1, 2, 3}, {1, 3})
            assert partition.is_under_replicated
            found_lags = read_standings(admin, {"nobody": [ProviderPartition(safe.name, 0), lost]})
            assert found_lags == {"nobody": {ProviderPartition(safe.name, 0): Standing(0, 0, None)}}
            silent, told = ["-", "-", "0", "-"], ["0", "0", "0", "0"]
            wanted = [silent if n == lost.partition else told for n in range(3)]
            # A broker that has just become the group's coordinator tells only what it knows to be on all copies in
            # sync, and learns of the last commits with the next write.
            wait_until(lambda: [line[2:] for line in offsets_shown("readers", alone.name)] == wanted)
            admin.create_topics([TopicSpec(new_name(), replication_factor=2)])
            assert admin.committed_offsets({"nobody": [ProviderPartition(safe.name, 0)]}) == {"nobody": {}}
        finally:
            cluster.brokers[2].start()
        wait_until(lambda: not _leaderless(describe(admin, alone.name)), timeout=120)


def offsets_shown(group: str, topic: str) -> list[list[str]]:
    """The words of each line of `manage.py offsets show`, but for the head."""
    out = StringIO()
    call_command("offsets", "show", group, "--topic", topic, stdout=out)
    return [line.split() for line in out.getvalue().splitlines()[1:]]


def _leaderless(topic: TopicDescription) -> list[object]:
    return [one for one in topic.partitions if one.leader is None]
