"""A cluster of three brokers, of which one after the other is killed and comes back under load."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from queuecore import DeliveryContext, Queues, Record, open_queues
from queuecore.consuming.draining import Backlog
from queuecore.errors import ProviderUnavailable
from queuecore.providers.base import QueueAdmin, TopicDescription, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.settings import consumer_settings
from queuecore.providers.kafka.transactional_client import TransactionalClient
from queuecore.providers.kafka.transactions import KafkaTransactionalProducer
from queuecore.providers.options import ConsumerOptions, KafkaOptions
from queuecore.testing.services import KafkaCluster, KafkaService
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.reliability.kafka_load import Load, Member, Observer, out_of_order, stored, wait_until
from tests.reliability.waited_for import drain
from tests.services import running

# kafka-python leaves some connections to brokers that are killed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("collected_after_each", "collected_after_all"),
]

REPLICATED = KafkaOptions(replication_factor=3, min_insync_replicas=2)
PARTITIONS = 4
BROKERS = 3
ROUNDS = [pytest.param(1, id="one round"), pytest.param(3, id="three rounds", marks=pytest.mark.full)]
# How much goes on while a broker is away.
PROGRESS = 300
# A death, an election and a restart, on a busy machine.
PATIENCE_S = 180.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    yield from running(KafkaCluster(tmp_path_factory.mktemp("cluster")))


@pytest.fixture(scope="module")
def queues(cluster: KafkaCluster) -> Iterator[Queues]:
    with open_queues("kafka", servers=cluster.bootstrap_servers, kafka=REPLICATED) as queues:
        yield queues


def describe(admin: QueueAdmin, topic: str) -> TopicDescription:
    return admin.describe_topics([topic])[topic]


def is_whole(admin: QueueAdmin, topic: str) -> bool:
    with suppress(ProviderUnavailable):
        return not any(partition.is_under_replicated for partition in describe(admin, topic).partitions)
    return False


def led_by(admin: QueueAdmin, topic: str) -> set[int | None]:
    """Empty while nobody can say."""
    with suppress(ProviderUnavailable):
        return {partition.leader for partition in describe(admin, topic).partitions}
    return set()


@dataclass(frozen=True)
class Aftermath:
    """What is known when it is over.

    handled  what a group's consumers were given, in the order they were
    found    what is in the queue, partition by partition
    sent_on  what a subscription sent on for it, exactly once, partition by partition
    answers  how often an admin told how far the groups are, while each of the brokers was away
    """

    acknowledged: set[bytes]
    handled: list[bytes]
    found: list[bytes]
    sent_on: list[bytes]
    answers: list[int]


class Storm:
    """Load on a queue, two consumers of it, a subscription that sends all on, and an admin; brokers die under them."""

    def __init__(self, cluster: KafkaCluster, queues: Queues) -> None:
        self._cluster = cluster
        self._queues = queues
        self._provider = queues.provider
        self._admin = queues.provider.admin()
        unique = uuid4().hex[:8]
        self._source, self._target, self._group = f"source-{unique}", f"target-{unique}", f"readers-{unique}"
        queues.create(self._source, PARTITIONS, use_internal_partition=True)
        queues.create(self._target, PARTITIONS)
        numbers = range(PARTITIONS)
        self._infos = [TopicPartitionInfo(self._source, number, use_internal_partition=True) for number in numbers]
        self._targets = [TopicPartitionInfo(self._target, number) for number in numbers]
        self._handled: list[bytes] = []
        self._load = Load(queues, self._source)
        self._observer = Observer(self._look)
        self._answers: list[int] = []

    def rage(self, rounds: int) -> Aftermath:
        with ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(Member(self._provider, self._group, self._infos, self._handled))
            stack.enter_context(self._observer)
            relay = self._queues.subscribe(self._source, self._relay, group="relay", delivery="exactly_once")
            stack.enter_context(relay)
            with self._load:
                for _ in range(rounds):
                    self._kill_in_turn()
            places = [info.place for info in self._infos]
            wait_until(Backlog(self._provider, self._group, places).is_done, PATIENCE_S)
            drain(relay, self._provider, places, PATIENCE_S)
        found, sent_on = stored(self._provider, self._infos), stored(self._provider, self._targets)
        return Aftermath(self._load.acknowledged, self._handled, found, sent_on, self._answers)

    def _kill_in_turn(self) -> None:
        """Each broker is away until the others have gone on without it; then all have all messages again."""
        for broker in self._cluster.brokers.values():
            broker.kill()
            acknowledged, handled = len(self._load.acknowledged) + PROGRESS, len(self._handled) + PROGRESS
            answers = self._observer.answers
            wait_until(lambda enough=acknowledged: len(self._load.acknowledged) >= enough, PATIENCE_S)
            wait_until(lambda enough=handled: len(self._handled) >= enough, PATIENCE_S)
            # The first may be to a question from before.
            wait_until(lambda before=answers: self._observer.answers > before + 1, PATIENCE_S)
            self._answers.append(self._observer.answers - answers)
            broker.start()
            wait_until(lambda: is_whole(self._admin, self._source), PATIENCE_S)

    def _relay(self, record: Record, context: DeliveryContext) -> None:
        context.send(self._target, record.key, record.data)

    def _look(self) -> None:
        places = [info.place for info in self._infos]
        self._admin.committed_offsets({self._group: places, "relay": places})
        self._admin.end_offsets(places)
        self._admin.groups()


@pytest.fixture(scope="module", params=ROUNDS)
def aftermath(cluster: KafkaCluster, queues: Queues, request: pytest.FixtureRequest) -> Aftermath:
    return Storm(cluster, queues).rage(request.param)


def test_the_checker_sees_what_is_out_of_order_and_bears_repetition() -> None:
    assert out_of_order([b"a:0", b"b:0", b"a:2", b"b:1", b"a:1", b"b:0", b"b:1", b"b:2"]) == ["a"]


def test_what_ends_a_thread_ends_the_waiting_with_its_cause() -> None:
    def fail() -> None:
        raise LookupError("the cause")

    with pytest.raises(LookupError, match="the cause"), Observer(fail):
        wait_until(lambda: False)
    with pytest.raises(LookupError, match="the cause"), Observer(fail):
        raise AssertionError("what follows from it")
    wait_until(lambda: True)


class TestBrokersDieUnderLoad:
    def test_nothing_acknowledged_is_lost(self, aftermath: Aftermath) -> None:
        assert aftermath.acknowledged - set(aftermath.found) == set()

    def test_everything_reaches_a_consumer(self, aftermath: Aftermath) -> None:
        assert set(aftermath.found) - set(aftermath.handled) == set()

    def test_each_key_keeps_its_order(self, aftermath: Aftermath) -> None:
        assert out_of_order(aftermath.found) == []
        assert out_of_order(aftermath.handled) == []
        assert out_of_order(aftermath.sent_on) == []

    def test_exactly_once_sends_on_all_and_nothing_twice(self, aftermath: Aftermath) -> None:
        assert Counter(aftermath.sent_on) == Counter(aftermath.found)
        assert set(Counter(aftermath.sent_on).values()) == {1}

    def test_an_admin_is_answered_meanwhile(self, aftermath: Aftermath) -> None:
        assert len(aftermath.answers) >= BROKERS
        assert min(aftermath.answers) > 1


def coordinator_of(cluster: KafkaCluster, group: str) -> KafkaService:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    described = admin.describe_consumer_groups([group], request_timeout=DEADLINE_S)[group].result()
    return cluster.brokers[described.coordinator.id]


def has_heard_of_it(producer: KafkaTransactionalProducer) -> bool:
    """Whether the library knows that a broker is away."""
    assert producer._client is not None
    with suppress(KafkaException):
        return len(producer._client._library.list_topics(timeout=DEADLINE_S).brokers) < BROKERS
    return False


def test_exactly_once_waits_for_no_coordinator_that_has_left(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library looks for the next one of the group when something else happens to its connections: never, where all
    is calm."""
    opened, open_client = list[KafkaTransactionalProducer](), KafkaTransactionalProducer._open_client

    def note(producer: KafkaTransactionalProducer) -> TransactionalClient:
        opened.append(producer)
        return open_client(producer)

    def relay(record: Record, context: DeliveryContext) -> None:
        context.send("right", record.key, record.data)

    monkeypatch.setattr(KafkaTransactionalProducer, "_open_client", note)
    hasty = replace(REPLICATED, request_timeout_ms=5_000)
    left, right = TopicPartitionInfo("left", 0), TopicPartitionInfo("right", 0)
    with open_queues("kafka", servers=cluster.bootstrap_servers, kafka=hasty) as queues:
        queues.create("left", 1)
        queues.create("right", 1)
        with queues.subscribe("left", relay, group="orphans", delivery="exactly_once") as subscription:
            queues.publish("left", None, b"1").result(PATIENCE_S)
            drain(subscription, queues.provider, [left.place], PATIENCE_S)
            coordinator = coordinator_of(cluster, "orphans")
            coordinator.kill()
            try:
                wait_until(lambda: has_heard_of_it(opened[-1]), PATIENCE_S)
                queues.publish("left", None, b"2").result(PATIENCE_S)
                drain(subscription, queues.provider, [left.place], PATIENCE_S)
            finally:
                coordinator.start()
        assert stored(queues.provider, [right]) == [b"1", b"2"]


def test_a_description_names_leaders_and_replicas_and_tells_who_is_behind(
    cluster: KafkaCluster, queues: Queues
) -> None:
    queues.create("described", 3, use_internal_partition=True)
    admin = queues.provider.admin()
    wait_until(lambda: is_whole(admin, "described"))
    description = describe(admin, "described")
    assert (description.spec.replication_factor, description.spec.min_insync_replicas) == (3, 2)
    for partition in description.partitions:
        assert sorted(partition.replicas) == sorted(partition.in_sync) == [1, 2, 3]
        assert partition.leader in partition.replicas

    cluster.brokers[2].kill()
    try:
        wait_until(lambda: led_by(admin, "described") in ({1}, {3}, {1, 3}), PATIENCE_S)
        for partition in describe(admin, "described").partitions:
            assert partition.is_under_replicated
            assert (sorted(partition.replicas), sorted(partition.in_sync)) == ([1, 2, 3], [1, 3])
    finally:
        cluster.brokers[2].start()
    wait_until(lambda: is_whole(admin, "described"), PATIENCE_S)


def test_what_was_created_or_deleted_every_broker_shows_so_at_once(cluster: KafkaCluster, queues: Queues) -> None:
    with ExitStack() as stack:
        admins = [
            stack.enter_context(closing(KafkaProvider(broker.bootstrap_servers))).admin()
            for broker in cluster.brokers.values()
        ]
        for number in range(10):
            name = f"shown-{number}"
            queues.provider.admin().create_topics([TopicSpec(name)])
            assert all(name in admin.topics() for admin in admins)
            queues.provider.admin().delete_topics([name])
            assert not any(name in admin.topics() for admin in admins)


@pytest.mark.parametrize(("rack", "broker"), [("a", 1), ("b", 2), ("c", 3)])
def test_a_consumer_reads_from_the_replica_in_its_rack(
    cluster: KafkaCluster, queues: Queues, rack: str, broker: int
) -> None:
    """Of three racks at most one has the leader."""
    queues.create("nearby", use_internal_partition=True)
    info = TopicPartitionInfo("nearby", 0, use_internal_partition=True)
    wait_until(lambda: is_whole(queues.provider.admin(), "nearby"), PATIENCE_S)
    sources: list[int] = []

    def note_source(statistics: str) -> None:
        if (topic := json.loads(statistics)["topics"].get("nearby")) is not None:
            sources.append(topic["partitions"]["0"]["broker"])

    connection = Connection(cluster.bootstrap_servers, replace(REPLICATED, client_rack=rack))
    settings = consumer_settings(ConsumerOptions(), connection.options, grows=False)
    watched = {"group.id": f"in-rack-{rack}", "statistics.interval.ms": 100, "stats_cb": note_source}
    with closing(connection.open(Consumer, {**settings, **watched})) as consumer:
        consumer.assign([TopicPartition(*info.place, 0)])

        def reads_there() -> bool:
            queues.publish("nearby", None, b"x").result(PATIENCE_S)
            consumer.consume(10, 0.1)
            return sources[-1:] == [broker]

        wait_until(reads_there, PATIENCE_S)
