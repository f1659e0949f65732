"""The five factories on Kafka: everything each of them offers sends and receives, on a real broker."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore import Channel, Deployment, QueueConsumer, QueueMessage, ServiceType, queue_factory, send_and_wait
from queuecore.catalogue import Scope
from queuecore.config.provider_settings import KafkaSettings
from queuecore.config.queue_options import queue_settings
from queuecore.config.queue_tree import (
    CoreSettings,
    EdgeSettings,
    EdqsSettings,
    PartitionSettings,
    QueueSettings,
    RuleEngineSettings,
    TaskSettings,
    VersionControlSettings,
)
from queuecore.factories.factory import QueueFactory
from queuecore.factories.kinds import KINDS, FactoryKind
from queuecore.testing.services import KafkaService
from queuecore.testing.services.kafka_secured import SASL, SCRAM, SecuredKafka
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.services import running

SERVICE, EDGE, JOB = "node-1", "edge-1", "IMPORT"
ON_KAFKA = {kind.name: kind for kind in KINDS if kind.provider == "kafka"}
POLL_MS = 20


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def small(servers: str, *, is_inside: bool) -> QueueSettings:
    """Topics of their own for each test, with no more partitions than it takes to have several."""
    return QueueSettings(
        prefix=f"factories-{uuid4().hex[:8]}",
        core=CoreSettings(partitions=2),
        rule_engine=RuleEngineSettings(partitions=2),
        edge=EdgeSettings(partitions=2),
        vc=VersionControlSettings(partitions=2),
        edqs=EdqsSettings(partitions=2),
        tasks=TaskSettings(partitions=2),
        partitions=PartitionSettings(use_internal_partition=is_inside),
        kafka=KafkaSettings(bootstrap_servers=servers),
    )


def factory_of(kind: FactoryKind, settings: QueueSettings) -> QueueFactory:
    made = queue_factory(
        min(kind.deployments), kind.serves[0], "kafka", settings=settings, service_id=SERVICE, job_types=[JOB]
    )
    assert isinstance(made, QueueFactory)
    return made


def member(factory: QueueFactory, channel: Channel) -> str:
    """Which member of a family the test uses; none where the channel is one topic."""
    scopes = {Scope.PER_SERVICE: SERVICE, Scope.PER_EDGE: EDGE, Scope.PER_JOB_TYPE: JOB}
    return scopes.get(channel.entry(factory.settings).scope, "")


def sends_to(factory: QueueFactory) -> list[Channel]:
    return [channel for channel in Channel if factory.kind.may_send(channel)]


def reads(factory: QueueFactory) -> list[Channel]:
    return [channel for channel in Channel if set(factory.kind.serves) & set(channel.entry(factory.settings).read_by)]


def address(factory: QueueFactory, channel: Channel) -> TopicPartitionInfo:
    return factory.address(channel, member(factory, channel), entity="device-1")


def message(channel: Channel) -> QueueMessage:
    """With a key, which some of the topics need."""
    return QueueMessage(uuid4(), channel.name.encode())


def subscribed(factory: QueueFactory, channel: Channel) -> QueueConsumer:
    arguments = [EDGE] if channel is Channel.EDGE_EVENTS else []
    consumer: QueueConsumer = getattr(factory, f"{channel.name.lower()}_consumer")(*arguments)
    consumer.subscribe()
    return consumer


@pytest.mark.parametrize("is_inside", [False, True], ids=["topic-per-partition", "internal-partitions"])
@pytest.mark.parametrize("name", ON_KAFKA)
def test_every_producer_and_consumer_of_a_factory_works(
    kafka_service: KafkaService, stack: ExitStack, name: str, is_inside: bool
) -> None:
    settings = small(kafka_service.bootstrap_servers, is_inside=is_inside)
    factory = stack.enter_context(factory_of(ON_KAFKA[name], settings))
    assert factory.name == name
    factory.create_topics()
    for channel in {*sends_to(factory), *reads(factory)}:
        if (who := member(factory, channel)) and channel is not Channel.TASKS:
            factory.create_topic(channel, who)

    for channel in sends_to(factory):
        producer = getattr(factory, f"{channel.name.lower()}_producer")()
        stored = send_and_wait(producer, address(factory, channel), message(channel), DEADLINE_S)
        with closing(factory.provider.reader()) as reader:
            [record] = reader.read(address(factory, channel).place, stored.offset, 1)
        assert record.data == channel.name.encode()

    outsider = factory.provider.producer()
    for channel in set(reads(factory)).difference(sends_to(factory)):
        send_and_wait(outsider, address(factory, channel), message(channel), DEADLINE_S)
    waiting = {channel: subscribed(factory, channel) for channel in reads(factory)}
    for consumer in waiting.values():
        stack.callback(consumer.stop)
    assert waiting

    def all_have_theirs() -> bool:
        for channel, consumer in list(waiting.items()):
            if records := consumer.poll(POLL_MS):
                assert [record.data for record in records] == [channel.name.encode()]
                consumer.commit()
                del waiting[channel]
        return not waiting

    wait_until(all_have_theirs, timeout=60)


@pytest.mark.parametrize("is_inside", [False, True])
def test_the_layout_is_as_the_settings_say(kafka_service: KafkaService, stack: ExitStack, is_inside: bool) -> None:
    settings = small(kafka_service.bootstrap_servers, is_inside=is_inside)
    factory = stack.enter_context(factory_of(ON_KAFKA["KafkaTbCoreQueueFactory"], settings))
    factory.create_topics()
    topics = factory.provider.admin().topics()
    core = f"{settings.prefix}.tb_core"
    counts = {name: spec.partitions for name, spec in topics.items() if name in {core, f"{core}.0", f"{core}.1"}}
    assert counts == ({core: 2} if is_inside else {f"{core}.0": 1, f"{core}.1": 1})


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    folder = tmp_path_factory.mktemp("secured")
    yield from running(SecuredKafka(folder, users={"transport": "hunter2"}, administrators=["transport"]))


def test_a_factory_reaches_a_cluster_over_tls_with_a_password(
    secured: SecuredKafka, stack: ExitStack, tmp_path: Path
) -> None:
    """All of it from settings, as an installation has them."""
    file = tmp_path / "queue.yaml"
    file.write_text(
        f"""
queue:
  type: kafka
  prefix: secured
  kafka:
    bootstrap.servers: {secured.servers(SASL)}
    ssl.enabled: true
    ssl.ca.location: {secured.authority.own.certificate}
    sasl.mechanism: {SCRAM}
    sasl.username: transport
    properties:
      socket.keepalive.enable: true
"""
    )
    settings = queue_settings({"SWITCHYARD_QUEUE_KAFKA_SASL_PASSWORD": "hunter2"}, file)
    factory = stack.enter_context(
        queue_factory(
            Deployment.MICROSERVICES, ServiceType.TB_TRANSPORT, "kafka", settings=settings, service_id=SERVICE
        )
    )
    factory.create_topics()
    consumer = factory.transport_notifications_consumer()
    stack.callback(consumer.stop)
    consumer.subscribe()
    to_me = factory.partitions(Channel.TRANSPORT_NOTIFICATIONS, SERVICE)[0]
    send_and_wait(factory.usage_stats_producer(), to_me, QueueMessage(None, b"hello"), DEADLINE_S)
    assert [record.data for record in wait_until(lambda: consumer.poll(POLL_MS))] == [b"hello"]
    assert SERVICE in "".join(factory.provider.admin().groups())
