"""A Kafka that does not trust everybody: encrypted, with certificates and passwords, and rights to each topic."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import chain, starmap
from typing import Any, Protocol

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from queuecore import open_queues
from queuecore.errors import NotAuthorised, QueueError
from queuecore.messages import QueueMessage
from queuecore.providers.base import Provider, QueueConsumer, TopicSpec
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import DEFAULT_KAFKA, KafkaOptions, KafkaSecurity
from queuecore.sending import send, send_and_wait
from queuecore.testing.contract.kit import new_name, send_all, take
from queuecore.testing.services import SecuredKafka
from queuecore.testing.services.certificates import Authority
from queuecore.testing.services.kafka_secured import MUTUAL_TLS, PLAIN, SASL, TLS
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo
from tests.integration.kafka_client import Client
from tests.services import running

PASSWORDS = {"owner": "the owner's", "guest": "the guest's", "client": "the client's"}
KEY_PASSWORD = "the key's"
# Who is not let in shall hear of it soon.
HASTY = KafkaOptions(request_timeout_ms=3_000, delivery_timeout_ms=3_000)

# kafka-python leaves it to the garbage collector to close what could not connect.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <(socket|ssl):ResourceWarning"),
    pytest.mark.usefixtures("collected_after_each", "collected_after_all"),
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    folder = tmp_path_factory.mktemp("secured")
    yield from running(SecuredKafka(folder, users=PASSWORDS, administrators=["owner", "machine"]))


class OpenSecured(Protocol):
    """Opens a provider that is closed at the end."""

    def __call__(self, servers: str, security: KafkaSecurity, options: KafkaOptions = DEFAULT_KAFKA) -> Provider: ...


@pytest.fixture
def open_secured() -> Iterator[OpenSecured]:
    with ExitStack() as stack:

        def open_secured(servers: str, security: KafkaSecurity, options: KafkaOptions = DEFAULT_KAFKA) -> Provider:
            provider = KafkaProvider(servers, kafka=replace(options, security=security))
            return stack.enter_context(closing(provider))

        yield open_secured


def encrypted(kafka: SecuredKafka) -> KafkaSecurity:
    return KafkaSecurity(tls=True, ca=str(kafka.authority.own.certificate))


def with_certificate(kafka: SecuredKafka) -> KafkaSecurity:
    own = kafka.authority.issue("machine", key_password=KEY_PASSWORD)
    files = {"certificate": str(own.certificate), "key": str(own.key), "key_password": KEY_PASSWORD}
    return replace(encrypted(kafka), **files)


def with_password(kafka: SecuredKafka, mechanism: str = "SCRAM-SHA-512", user: str = "owner") -> KafkaSecurity:
    return replace(encrypted(kafka), sasl_mechanism=mechanism, username=user, password=PASSWORDS[user])


WAYS_IN = {
    "TLS": (TLS, encrypted),
    "mutual TLS": (MUTUAL_TLS, with_certificate),
    "PLAIN over TLS": (SASL, lambda kafka: with_password(kafka, "PLAIN")),
    "SCRAM over TLS": (SASL, with_password),
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_who_is_let_in_can_do_everything(kafka: SecuredKafka, open_secured: OpenSecured, way: str) -> None:
    listener, security = WAYS_IN[way]
    provider = open_secured(kafka.servers(listener), security(kafka))
    info, group = TopicPartitionInfo(new_name()), new_name()
    admin = provider.admin()
    admin.create_topics([TopicSpec(info.full_topic_name)])
    send_and_wait(provider.producer(), info, QueueMessage(b"key", b"hello"), DEADLINE_S)
    consumer = provider.consumer(group)
    try:
        consumer.subscribe([info])
        assert [record.data for record in take(consumer, 1)] == [b"hello"]
        consumer.commit()
        assert info.place in next(iter(admin.groups()[group].members.values()))
    finally:
        consumer.stop()
    with closing(provider.reader()) as reader:
        assert [record.data for record in reader.read(info.place, 0, 10)] == [b"hello"]
    assert admin.committed_offsets({group: [info.place]}) == {group: {info.place: 1}}
    assert admin.end_offsets([info.place]) == {info.place: 1}
    admin.alter_group_offsets(group, {info.place: 0})
    admin.delete_topics([info.full_topic_name])


def of_strangers(kafka: SecuredKafka) -> KafkaSecurity:
    stranger = Authority(kafka.data_dir / "strangers")
    return replace(encrypted(kafka), ca=str(stranger.own.certificate))


# Where to, with which security, and what the error says.
MISTAKES = {
    "wrong password": (SASL, lambda kafka: replace(with_password(kafka), password="wrong"), "Authentication failed"),
    "wrong password, PLAIN": (
        SASL,
        lambda kafka: replace(with_password(kafka, "PLAIN"), password="wrong"),
        "Authentication failed: Invalid username or password",
    ),
    "other authority": (TLS, of_strangers, "broker certificate could not be verified"),
    "no certificate": (MUTUAL_TLS, encrypted, "bad certificate"),
    "no encryption": (TLS, lambda _: KafkaSecurity(), ""),
    # librdkafka asks whether that listener has no encryption, the first time it is refused.
    "encryption where there is none": (PLAIN, encrypted, "SSL connection closed by peer"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_who_is_not_let_in_hears_why_and_what_to_do(
    kafka: SecuredKafka, open_secured: OpenSecured, mistake: str
) -> None:
    listener, security, reason = MISTAKES[mistake]
    provider = open_secured(kafka.servers(listener), security(kafka), HASTY)
    info = TopicPartitionInfo(new_name())
    with closing(provider.reader()) as reader, ThreadPoolExecutor() as at_once:
        answers: list[Future[Any]] = [
            send(provider.producer(), info, QueueMessage(None, b"never")),
            at_once.submit(provider.admin().create_topics, [TopicSpec(info.full_topic_name)]),
            at_once.submit(provider.admin().groups),
            at_once.submit(reader.read, info.place, 0, 1),
        ]
        for answer in answers:
            with pytest.raises(QueueError, match=f"cannot .*{reason}.*; check that .* TLS and SASL are set"):
                answer.result(DEADLINE_S)


class TestRights:
    """A guest may write to one topic and read another, as a member of one group."""

    @pytest.fixture
    def topics(self, kafka: SecuredKafka, open_secured: OpenSecured) -> dict[str, TopicPartitionInfo]:
        """A topic to be written, one to be read, and one that is none of the guest's business; two messages in each."""
        owner = open_secured(kafka.servers(SASL), with_password(kafka))
        topics = {what: TopicPartitionInfo(new_name()) for what in ("written", "read", "secret")}
        owner.admin().create_topics([TopicSpec(info.full_topic_name) for info in topics.values()])
        for info in topics.values():
            send_all(owner, info, b"0", b"1")
        return topics

    @pytest.fixture
    def group(self) -> str:
        return new_name()

    @pytest.fixture
    def guest(
        self, kafka: SecuredKafka, open_secured: OpenSecured, topics: dict[str, TopicPartitionInfo], group: str
    ) -> Provider:
        allow(
            kafka,
            right("guest", ResourceType.TOPIC, AclOperation.WRITE, topics["written"].full_topic_name),
            right("guest", ResourceType.TOPIC, AclOperation.READ, topics["read"].full_topic_name),
            right("guest", ResourceType.GROUP, AclOperation.READ, group),
        )
        return open_secured(kafka.servers(SASL), with_password(kafka, user="guest"))

    def test_a_message_that_may_not_be_sent_fails_alone(
        self, guest: Provider, topics: dict[str, TopicPartitionInfo]
    ) -> None:
        producer = guest.producer()
        order = ["written", "secret", "written", "read", "written"] * 20
        answers = [send(producer, topics[what], QueueMessage(b"key", b"%d" % n)) for n, what in enumerate(order)]
        for what, answer in zip(order, answers, strict=True):
            error = answer.exception(DEADLINE_S)
            assert error is None if what == "written" else isinstance(error, NotAuthorised), (what, error)
        offsets = [answer.result().offset for what, answer in zip(order, answers, strict=True) if what == "written"]
        assert offsets == list(range(2, 62))
        with pytest.raises(NotAuthorised, match="ask whoever runs the brokers for an ACL"):
            answers[1].result()

    def test_only_the_group_that_may_reads(
        self, guest: Provider, topics: dict[str, TopicPartitionInfo], group: str
    ) -> None:
        with stopping(guest.consumer(group)) as consumer:
            assert read(consumer, topics["read"]) == [b"0", b"1"]
            consumer.commit()
        assert guest.admin().committed_offsets({group: [topics["read"].place]})[group] == {topics["read"].place: 2}
        with stopping(guest.consumer("somebody-else's")) as consumer, pytest.raises(NotAuthorised, match="ACL"):
            read(consumer, topics["read"])
        with pytest.raises(NotAuthorised, match="ACL"):
            guest.admin().committed_offsets({"somebody-else's": [topics["read"].place]})

    def test_only_the_topic_that_may_be_is_read(
        self, guest: Provider, topics: dict[str, TopicPartitionInfo], group: str
    ) -> None:
        with closing(guest.reader()) as reader:
            assert [record.data for record in reader.read(topics["read"].place, 0, 10)] == [b"0", b"1"]
            with pytest.raises(NotAuthorised, match="ACL"):
                reader.read(topics["secret"].place, 0, 10)
        with stopping(guest.consumer(group)) as consumer, pytest.raises(NotAuthorised, match="ACL"):
            read(consumer, topics["secret"])

    def test_a_guest_changes_nothing(self, guest: Provider, topics: dict[str, TopicPartitionInfo]) -> None:
        admin = guest.admin()
        with pytest.raises(NotAuthorised, match="ACL"):
            admin.create_topics([TopicSpec(new_name())])
        with pytest.raises(NotAuthorised, match="ACL"):
            admin.delete_topics([topics["read"].full_topic_name])


PREFIX = "client-"
TOPIC, GROUP, TRANSACTION, CLUSTER = (
    *(ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID),
    ResourceType.BROKER,  # the library's name for it
)
READ_SETTINGS, SET = (TOPIC, AclOperation.DESCRIBE_CONFIGS), (TOPIC, AclOperation.ALTER_CONFIGS)
# What a client does, in order, and the rights without which it could not. Together they are those that the guide to
# Kafka lists, but for the one that takes several brokers to show.
STEPS: dict[Callable[[Client], None], list[tuple[ResourceType, AclOperation]]] = {
    Client.create: [(TOPIC, AclOperation.CREATE)],
    Client.publish: [(TOPIC, AclOperation.WRITE)],
    Client.consume: [(TOPIC, AclOperation.READ)],
    Client.look: [],
    Client.send_on_exactly_once: [(TRANSACTION, AclOperation.WRITE)],
    # Who may set them may read them.
    Client.describe: [READ_SETTINGS, SET],
    Client.measure: [(CLUSTER, AclOperation.DESCRIBE)],
    Client.alter_retention: [SET],
    Client.grow: [(TOPIC, AclOperation.ALTER)],
    Client.reset_offsets: [(GROUP, AclOperation.READ)],
    Client.forget_offsets: [(GROUP, AclOperation.DELETE)],
    Client.delete: [(TOPIC, AclOperation.DELETE)],
}


class TestNeededRights:
    """Those that the guide to Kafka lists, to names that begin alike."""

    @pytest.fixture(autouse=True)
    def rights(self, kafka: SecuredKafka) -> None:
        allow(kafka, *starmap(of_client, set(chain(*STEPS.values()))))

    @pytest.fixture
    def name(self) -> str:
        return PREFIX + new_name()

    def test_they_suffice(self, kafka: SecuredKafka, name: str) -> None:
        with opened_client(kafka, name) as client:
            for step in STEPS:
                step(client)

    def test_each_is_needed(self, kafka: SecuredKafka, name: str) -> None:
        with opened_client(kafka, name) as client:
            for step, needed in STEPS.items():
                if rights := list(starmap(of_client, needed)):
                    forbid(kafka, *rights)
                    with opened_client(kafka, name) as poorer, pytest.raises(NotAuthorised):
                        step(poorer)
                    allow(kafka, *rights)
                step(client)


@contextmanager
def opened_client(kafka: SecuredKafka, name: str) -> Iterator[Client]:
    options = KafkaOptions(security=with_password(kafka, user="client"))
    with open_queues("kafka", servers=kafka.servers(SASL), kafka=options) as queues:
        yield Client(queues, name)


def of_client(what: ResourceType, operation: AclOperation) -> AclBinding:
    """To all of its prefix, or to the cluster."""
    if what == CLUSTER:
        return right("client", what, operation, "kafka-cluster")
    return right("client", what, operation, PREFIX, ResourcePatternType.PREFIXED)


def right(
    user: str,
    what: ResourceType,
    operation: AclOperation,
    name: str,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    return AclBinding(what, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def allow(kafka: SecuredKafka, *rights: AclBinding) -> None:
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in client.create_acls(list(rights)).values():
        future.result(DEADLINE_S)


def forbid(kafka: SecuredKafka, *rights: AclBinding) -> None:
    """What was allowed."""
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    chosen = [
        AclBindingFilter(
            *(one.restype, one.name, one.resource_pattern_type, one.principal, one.host, one.operation),
            one.permission_type,
        )
        for one in rights
    ]
    for future in client.delete_acls(chosen).values():
        assert future.result(DEADLINE_S)


def read(consumer: QueueConsumer, info: TopicPartitionInfo) -> list[bytes]:
    """The two messages there."""
    consumer.subscribe([info])
    return [record.data for record in take(consumer, 2)]


@contextmanager
def stopping(consumer: QueueConsumer) -> Iterator[QueueConsumer]:
    try:
        yield consumer
    finally:
        consumer.stop()
