"""The seven factories of the platform and ours for the log: which there are, and what each gives."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from queuecore import (
    Channel,
    ConfigurationError,
    CoreQueueFactory,
    Deployment,
    EdqsQueueFactory,
    MonolithQueueFactory,
    NotSupported,
    QueueConsumer,
    QueueMessage,
    RuleEngineQueueFactory,
    ServiceQueueFactory,
    ServiceType,
    TransportQueueFactory,
    VersionControlQueueFactory,
    queue_factory,
    send_and_wait,
)
from queuecore.catalogue import Scope, catalogue
from queuecore.config.provider_settings import KafkaSettings
from queuecore.config.queue_tree import CoreSettings, PartitionSettings, QueueSettings
from queuecore.factories.channels import SENDS
from queuecore.factories.kinds import KINDS
from queuecore.providers.memory import MemoryProvider
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import SYSTEM_TENANT, TopicPartitionInfo, notification_topic

SEED = Path(__file__).parents[4] / "shared" / "seeds" / "000_b2cd67f5a47816fe.txt"
CORE, RULE_ENGINE, TRANSPORT = ServiceType.TB_CORE, ServiceType.TB_RULE_ENGINE, ServiceType.TB_TRANSPORT
VERSION_CONTROL, EDQS = ServiceType.TB_VC_EXECUTOR, ServiceType.EDQS
DEFAULTS = QueueSettings()

PROTOCOLS: dict[ServiceType, type] = {
    CORE: CoreQueueFactory,
    RULE_ENGINE: RuleEngineQueueFactory,
    VERSION_CONTROL: VersionControlQueueFactory,
    TRANSPORT: TransportQueueFactory,
    EDQS: EdqsQueueFactory,
}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def in_memory(service_type: ServiceType = CORE, **options: Any) -> ServiceQueueFactory:
    return queue_factory(Deployment.MONOLITH, service_type, "in-memory", service_id="node-1", **options)


class TestChoosing:
    @pytest.mark.parametrize(
        ("deployment", "service_type", "provider", "name"),
        [
            ("monolith", CORE, "kafka", "KafkaMonolithQueueFactory"),
            ("monolith", RULE_ENGINE, "kafka", "KafkaMonolithQueueFactory"),
            ("monolith", VERSION_CONTROL, "kafka", "KafkaMonolithQueueFactory"),
            ("microservices", CORE, "kafka", "KafkaTbCoreQueueFactory"),
            ("microservices", RULE_ENGINE, "kafka", "KafkaTbRuleEngineQueueFactory"),
            ("microservices", TRANSPORT, "kafka", "KafkaTbTransportQueueFactory"),
            ("microservices", EDQS, "kafka", "KafkaEdqsQueueFactory"),
            ("monolith", CORE, "in-memory", "InMemoryMonolithQueueFactory"),
            ("monolith", RULE_ENGINE, "in-memory", "InMemoryMonolithQueueFactory"),
            ("monolith", TRANSPORT, "in-memory", "InMemoryTbTransportQueueFactory"),
            ("monolith", CORE, "log", "LogMonolithQueueFactory"),
            ("monolith", VERSION_CONTROL, "log", "LogMonolithQueueFactory"),
            ("microservices", CORE, "log", "LogTbCoreQueueFactory"),
            ("microservices", RULE_ENGINE, "log", "LogTbRuleEngineQueueFactory"),
            ("microservices", TRANSPORT, "log", "LogTbTransportQueueFactory"),
            ("microservices", EDQS, "log", "LogEdqsQueueFactory"),
        ],
    )
    def test_by_deployment_service_and_provider(
        self, tmp_path: Path, deployment: str, service_type: ServiceType, provider: Any, name: str
    ) -> None:
        folder = tmp_path if provider == "log" else None
        with queue_factory(deployment, service_type, provider, folder=folder) as factory:
            assert factory.name == name

    @pytest.mark.skipif(not SEED.is_file(), reason="the seed documents are not beside this checkout")
    def test_every_factory_of_the_seed_is_there(self) -> None:
        seeded = set(re.findall(r"^\| ((?:Kafka|InMemory)\w+QueueFactory) \|", SEED.read_text(), re.MULTILINE))
        assert len(seeded) == 7
        assert {kind.name for kind in KINDS if kind.provider != "log"} == seeded

    @pytest.mark.parametrize(
        ("deployment", "service_type", "provider"),
        [
            ("microservices", CORE, "in-memory"),
            ("monolith", VERSION_CONTROL, "in-memory"),
            ("microservices", VERSION_CONTROL, "kafka"),
            ("microservices", ServiceType.JS_EXECUTOR, "kafka"),
            ("monolith", EDQS, "log"),
        ],
    )
    def test_a_pair_that_the_platform_lacks_is_refused_with_what_there_is(
        self, deployment: str, service_type: ServiceType, provider: Any
    ) -> None:
        with pytest.raises(ConfigurationError) as refused:
            queue_factory(deployment, service_type, provider)
        assert f"there is no queue factory for {deployment}, {service_type}, {provider}" in str(refused.value)
        assert all(kind.name in str(refused.value) for kind in KINDS)
        assert "KafkaEdqsQueueFactory (microservices, EDQS, kafka)" in str(refused.value)

    def test_words_that_mean_nothing_are_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="no deployment 'cloud'; choose one of monolith, microservices"):
            queue_factory("cloud", CORE, "in-memory")
        with pytest.raises(ConfigurationError, match="no service type 'tb-cor'"):
            queue_factory("monolith", "tb-cor", "in-memory")
        with pytest.raises(ConfigurationError, match="no queue factory for monolith, TB_CORE, rabbit"):
            queue_factory("monolith", CORE, "rabbit")  # type: ignore[call-overload]
        with pytest.raises(ConfigurationError, match="the provider log needs folder"):
            queue_factory("monolith", CORE, "log")

    def test_how_kafka_is_reached_is_checked_at_once(self) -> None:
        settings = replace(DEFAULTS, kafka=KafkaSettings(ssl_enabled=True, ssl_ca_location="nowhere.pem"))
        with pytest.raises(ConfigurationError, match=r"KafkaSecurity\.ca .* is 'nowhere\.pem', where there is no file"):
            queue_factory("microservices", CORE, "kafka", settings=settings)

    def test_a_service_type_may_be_written_as_the_platform_does(self) -> None:
        with queue_factory("monolith", "tb-rule-engine", "in-memory") as factory:
            assert factory.name == "InMemoryMonolithQueueFactory"


class TestWhatAServiceMayDo:
    @pytest.mark.parametrize("service_type", PROTOCOLS)
    def test_its_protocol_has_a_method_for_each_channel_and_no_other(self, service_type: ServiceType) -> None:
        sends = {f"{channel.name.lower()}_producer" for channel in SENDS[service_type]}
        reads = {
            f"{channel.name.lower()}_consumer" for channel in Channel if service_type in channel.entry(DEFAULTS).read_by
        }
        assert {name for name in vars(PROTOCOLS[service_type]) if not name.startswith("_")} == sends | reads

    def test_every_topic_of_the_catalogue_is_a_channel_that_somebody_sends_to(self) -> None:
        entries = [channel.entry(DEFAULTS) for channel in Channel]
        assert sorted(entry.topic for entry in entries) == sorted(entry.topic for entry in catalogue(DEFAULTS))
        # The platform has no factories for script executors and task processors, which send to these.
        assert set(Channel) - set().union(*SENDS.values()) == {Channel.JS_RESPONSES, Channel.JOB_STATS}

    @pytest.mark.parametrize(
        ("method", "service_types"),
        [
            ("core_producer", [CORE, RULE_ENGINE, TRANSPORT]),
            ("rule_engine_producer", [CORE, RULE_ENGINE, TRANSPORT]),
            ("core_notifications_producer", [CORE, RULE_ENGINE, VERSION_CONTROL, TRANSPORT]),
            ("transport_notifications_producer", [CORE, RULE_ENGINE]),
            ("js_requests_producer", [CORE, RULE_ENGINE]),
            ("core_consumer", [CORE]),
            ("rule_engine_consumer", [RULE_ENGINE]),
            ("transport_notifications_consumer", [TRANSPORT]),
            ("version_control_consumer", [VERSION_CONTROL]),
            ("edqs_requests_consumer", [EDQS]),
        ],
    )
    def test_the_arrows_of_the_seeds_pictures(self, method: str, service_types: list[ServiceType]) -> None:
        assert [one for one in PROTOCOLS if hasattr(PROTOCOLS[one], method)] == service_types

    def test_what_is_not_its_own_is_refused_with_what_is(self) -> None:
        with in_memory(TRANSPORT) as factory:
            with pytest.raises(NotSupported, match="InMemoryTbTransportQueueFactory cannot read core; it can read: tr"):
                factory.consumer(Channel.CORE)
            with pytest.raises(NotSupported, match="cannot send to version_control; it can send to: core, "):
                factory.producer(Channel.VERSION_CONTROL)

    def test_a_monolith_in_memory_has_no_version_control_to_read(self) -> None:
        with in_memory() as factory, pytest.raises(NotSupported, match="cannot read version_control"):
            factory.consumer(Channel.VERSION_CONTROL)


class TestProducers:
    def test_their_default_topic_is_the_channels(self) -> None:
        settings = replace(DEFAULTS, prefix="acme", core=CoreSettings(topic="heart"))
        with queue_factory(Deployment.MONOLITH, CORE, "in-memory", settings=settings) as factory:
            assert factory.core_producer().default_topic == "acme.heart"
            assert factory.core_notifications_producer().default_topic == "acme.heart.notifications"
            assert factory.rule_engine_producer().default_topic == "acme.tb_rule_engine"
            assert factory.tasks_producer().default_topic == "acme.tasks"


class TestConsumers:
    @pytest.fixture
    def factory(self) -> Iterator[MonolithQueueFactory]:
        provider = Recording()
        with queue_factory(Deployment.MONOLITH, CORE, "in-memory", service_id="node-1", opened=provider) as factory:
            yield factory

    @pytest.mark.parametrize(
        ("method", "arguments", "group", "topic"),
        [
            ("core", (), "tb_core_main-consumer", "tb_core"),
            ("rule_engine", (), "tb_rule_engine_main-consumer", "tb_rule_engine"),
            ("rule_engine", (3,), "tb_rule_engine_main-consumer-3", "tb_rule_engine"),
            ("edge", (), "tb_core_edge-consumer", "tb_edge"),
            ("usage_stats", (), "tb_core_usagestats-consumer", "tb_usage_stats"),
            ("ota_packages", (), "tb_core_otapackages-consumer", "tb_ota_package"),
            ("housekeeper", (), "tb_core_housekeeper-consumer", "tb_housekeeper"),
            (
                "transport_api_requests",
                (),
                "tb_core_transportapirequests-consumer",
                "tb_transport.api.requests",
            ),
            (
                "core_notifications",
                (),
                "tb-core-notifications-node-node-1",
                "tb_core.notifications.node-1",
            ),
            (
                "rule_engine_notifications",
                (),
                "tb-rule-engine-notifications-node-node-1",
                "tb_rule_engine.notifications.node-1",
            ),
            ("js_responses", (), "js_eval.responses.node-1", "js_eval.responses.node-1"),
            ("edqs_responses", (), "edqs.responses.node-1", "edqs.responses.node-1"),
            ("edge_events", ("e-7",), "tb_core.edge.notifications.e-7", "tb_core.edge.notifications.e-7"),
        ],
    )
    def test_each_has_its_topic_and_its_group(
        self, factory: MonolithQueueFactory, method: str, arguments: tuple[Any, ...], group: str, topic: str
    ) -> None:
        getattr(factory, f"{method}_consumer")(*arguments)
        assert isinstance(factory.provider, Recording)
        assert factory.provider.consumers == [(group, topic)]

    def test_prefix_and_style_of_the_groups_are_settings(self) -> None:
        settings = replace(DEFAULTS, prefix="acme", group_id_style="thingsboard")
        provider = Recording()
        with queue_factory(
            Deployment.MONOLITH, CORE, "in-memory", settings=settings, service_id="n", opened=provider
        ) as factory:
            factory.rule_engine_consumer(3)
            factory.core_consumer()
            factory.core_notifications_consumer()
        assert provider.consumers == [
            ("acme.re-Main-consumer-3", "acme.tb_rule_engine"),
            ("acme.tb-core-node", "acme.tb_core"),
            ("acme.tb-core-notifications-node-n", "acme.tb_core.notifications.n"),
        ]

    def test_a_partition_that_is_not_there_is_refused(self, factory: MonolithQueueFactory) -> None:
        with pytest.raises(ConfigurationError, match="tb_rule_engine has no partition 10; it has 10"):
            factory.rule_engine_consumer(10)


@contextmanager
def stopping(consumer: QueueConsumer) -> Iterator[QueueConsumer]:
    yield consumer
    consumer.stop()


class Recording(MemoryProvider):
    """Notes for which group and topic consumers are made."""

    def __init__(self) -> None:
        super().__init__()
        self.consumers: list[tuple[str, str]] = []

    def consumer(self, group: str, topic: str = "", *, member_id: str | None = None) -> Any:
        self.consumers.append((group, topic))
        return super().consumer(group, topic, member_id=member_id)


class TestWorking:
    def test_a_transport_talks_to_the_rule_engine_and_hears_from_it(self, tmp_path: Path, stack: ExitStack) -> None:
        """Two services in processes of their own, as far as the log can tell."""
        settings = replace(DEFAULTS, partitions=PartitionSettings(count=2))
        where: dict[str, Any] = {"settings": settings, "folder": tmp_path}
        engine = stack.enter_context(
            queue_factory(Deployment.MICROSERVICES, RULE_ENGINE, "log", service_id="re", **where)
        )
        transport = stack.enter_context(
            queue_factory(Deployment.MICROSERVICES, TRANSPORT, "log", service_id="mqtt", **where)
        )
        engine.create_topics()
        transport.create_topics()
        consumer = stack.enter_context(stopping(engine.rule_engine_consumer()))
        consumer.subscribe(engine.partitions(Channel.RULE_ENGINE))
        notifications = stack.enter_context(stopping(transport.transport_notifications_consumer()))
        notifications.subscribe()

        device = b"device-1"
        there = transport.router.resolve(RULE_ENGINE, None, SYSTEM_TENANT, device)
        send_and_wait(transport.rule_engine_producer(), there, QueueMessage(device, b"21.5"), DEADLINE_S)
        assert [record.data for record in wait_until(lambda: consumer.poll(50))] == [b"21.5"]

        back = TopicPartitionInfo(notification_topic("tb_transport", "mqtt"))
        send_and_wait(engine.transport_notifications_producer(), back, QueueMessage(None, b"too warm"), DEADLINE_S)
        assert [record.data for record in wait_until(lambda: notifications.poll(50))] == [b"too warm"]

    def test_services_of_a_process_share_one_memory(self, stack: ExitStack) -> None:
        provider = MemoryProvider()
        core = stack.enter_context(queue_factory(Deployment.MONOLITH, CORE, "in-memory", opened=provider))
        core.create_topics()
        with queue_factory(Deployment.MONOLITH, TRANSPORT, "in-memory", opened=provider) as transport:
            [info] = transport.partitions(Channel.USAGE_STATS)
            send_and_wait(transport.usage_stats_producer(), info, QueueMessage(None, b"1 message"), DEADLINE_S)
        # The provider is not the transport's to close.
        consumer = stack.enter_context(stopping(core.usage_stats_consumer()))
        consumer.subscribe()
        assert [record.data for record in wait_until(lambda: consumer.poll(50))] == [b"1 message"]
        provider.close()

    def test_the_topics_of_a_service_are_those_it_reads_and_sends_to(self) -> None:
        with queue_factory(Deployment.MONOLITH, TRANSPORT, "in-memory", service_id="mqtt") as factory:
            factory.create_topics()
            factory.create_topics()
            topics = factory.provider.admin().topics()
        assert {name for name in topics if not name.rpartition(".")[2].isdecimal()} == {
            "tb_transport.api.requests",
            "tb_transport.api.responses.mqtt",
            "tb_transport.notifications.mqtt",
            "tb_usage_stats",
            "tb_housekeeper",
        }
        assert sum(name.startswith("tb_core.") for name in topics) == 10
        assert sum(name.startswith("tb_rule_engine.") for name in topics) == 10

    def test_a_family_has_no_partitions_to_list(self) -> None:
        with (
            in_memory() as factory,
            pytest.raises(ConfigurationError, match=r"is a family of topics .* name the member"),
        ):
            factory.partitions(Channel.CORE_NOTIFICATIONS)

    def test_by_default_the_machine_is_the_service(self) -> None:
        with queue_factory(Deployment.MONOLITH, CORE, "in-memory") as factory:
            assert re.fullmatch(r"[A-Za-z0-9_-]+", factory.service_id)

    def test_every_channel_stands_for_one_topic_or_a_family(self) -> None:
        assert {channel.entry(DEFAULTS).scope for channel in Channel} == set(Scope)


class TestWhatConsumersRead:
    @pytest.mark.parametrize("is_inside", [False, True])
    @pytest.mark.parametrize("partition", [None, 3])
    def test_without_being_told_all_partitions_or_the_one_asked_for(
        self, stack: ExitStack, partition: int | None, is_inside: bool
    ) -> None:
        settings = QueueSettings(partitions=PartitionSettings(use_internal_partition=is_inside))
        factory = stack.enter_context(in_memory(settings=settings))
        factory.create_topics()
        consumer = factory.consumer(Channel.CORE, partition=partition)
        stack.callback(consumer.stop)
        consumer.subscribe()
        infos = factory.partitions(Channel.CORE)
        wanted = infos if partition is None else [infos[partition]]
        wait_until(lambda: consumer.poll(10) or consumer.partitions == {info.place for info in wanted})
        send_and_wait(factory.core_producer(), infos[3], QueueMessage(None, b"x"), DEADLINE_S)
        [record] = consumer.poll(int(DEADLINE_S * 1000))
        with factory.provider.transactional_producer("t").begin() as transaction:
            transaction.commit_offsets(consumer, {infos[3].place: record.offset + 1})

    def test_what_is_told_counts(self, stack: ExitStack) -> None:
        factory = stack.enter_context(in_memory())
        factory.create_topics()
        consumer = stack.enter_context(stopping(factory.core_consumer()))
        first = factory.partitions(Channel.CORE)[:1]
        consumer.subscribe(first)
        wait_until(lambda: consumer.poll(10) or consumer.partitions == {first[0].place})


class TestFamilies:
    def test_tasks_of_a_job_type_are_routed_like_a_queue(self, stack: ExitStack) -> None:
        factory = stack.enter_context(in_memory(job_types=["cf_reprocessing"]))
        factory.create_topics()
        infos = factory.partitions(Channel.TASKS, "CF_REPROCESSING")
        assert {info.topic for info in infos} == {"tasks.cf_reprocessing"}
        info = factory.address(Channel.TASKS, "cf_reprocessing", entity="job-1")
        assert info in infos
        send_and_wait(factory.producer(Channel.TASKS), info, QueueMessage(None, b"x"), DEADLINE_S)
        with pytest.raises(ConfigurationError, match=r"no job type 'other'.*there are: CF_REPROCESSING"):
            factory.address(Channel.TASKS, "other")

    @pytest.mark.parametrize(
        ("channel", "member", "topic"),
        [
            (Channel.EDGE_EVENTS, "edge-1", "tb_core.edge.notifications.edge-1"),
            (Channel.RULE_ENGINE_NOTIFICATIONS, "engine-2", "tb_rule_engine.notifications.engine-2"),
            (Channel.TRANSPORT_API_RESPONSES, "transport-1", "tb_transport.api.responses.transport-1"),
        ],
    )
    def test_a_member_has_an_address(self, stack: ExitStack, channel: Channel, member: str, topic: str) -> None:
        factory = stack.enter_context(in_memory())
        factory.create_topic(channel, member)
        info = factory.address(channel, member)
        assert (info.full_topic_name, factory.partitions(channel, member)) == (topic, (info,))
        send_and_wait(factory.producer(channel), info, QueueMessage(None, b"x"), DEADLINE_S)
        with pytest.raises(ConfigurationError, match="name the member"):
            factory.address(channel)

    def test_a_channel_that_is_no_family_has_an_address_for_each_entity(self, stack: ExitStack) -> None:
        factory = stack.enter_context(in_memory())
        one = factory.address(Channel.CORE, entity="device-1")
        assert one == factory.address(Channel.CORE, entity="device-1")
        assert one in factory.partitions(Channel.CORE)
        with pytest.raises(ConfigurationError, match="not a family"):
            factory.address(Channel.CORE, "node-1")
