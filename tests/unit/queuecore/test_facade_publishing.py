"""Creating queues and publishing to them, as a program does that has nothing but the library."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from queuecore import (
    ConfigurationError,
    InvalidMessage,
    InvalidName,
    PayloadTooLarge,
    ProducerOptions,
    ProviderPartition,
    ProviderUnavailable,
    QueueError,
    Queues,
    Record,
    RecordMetadata,
    TopicSpec,
    UnknownQueue,
    decode,
    open_queues,
)
from queuecore.hashing import HASH_FUNCTIONS, Entity, partition_of
from queuecore.messages import decode_millis
from queuecore.proto.events_pb2 import OffsetSample
from queuecore.testing.waiting import DEADLINE_S

OpenQueues = Callable[..., Queues]

ENTITY = UUID("784f394c-42b6-435a-983c-b7beff2784f9")


def published(queues: Queues, entity: Entity | None, *arguments: object, queue: str = "orders") -> Record:
    """Publish, and read what was stored."""
    metadata = queues.publish(queue, entity, *arguments).result(DEADLINE_S)  # type: ignore[arg-type]
    return stored(queues, metadata)


def stored(queues: Queues, metadata: RecordMetadata) -> Record:
    with closing(queues.provider.reader()) as reader:
        [record] = reader.read(ProviderPartition(metadata.topic, metadata.partition), metadata.offset, 1)
        return record


class TestOpening:
    def test_by_the_name_of_a_provider(self, tmp_path: Path) -> None:
        with open_queues("in-memory") as queues:
            assert not queues.provider.capabilities.durable
        with open_queues("log", folder=tmp_path / "log") as queues:
            queues.create("orders")
            queues.publish("orders", None, b"kept")
        with open_queues("log", folder=str(tmp_path / "log")) as queues:
            assert queues.names() == ["orders"]

    def test_kafka_is_reached_only_when_it_is_used(self) -> None:
        provider = open_queues("kafka", servers="localhost:1").provider
        assert provider.capabilities.durable
        provider.close()

    @pytest.mark.parametrize(
        ("name", "where", "said"),
        [
            ("rabbit", {}, "there is no provider 'rabbit'; choose one of in-memory, log, kafka"),
            ("log", {}, "the provider log needs folder"),
            ("kafka", {"servers": ""}, "the provider kafka needs servers"),
            ("in-memory", {"folder": "x"}, "folder is 'x', but the provider in-memory has none"),
            ("log", {"folder": "x", "servers": "y:1"}, "servers is 'y:1', but the provider log has none"),
            ("in-memory", {"hash_name": "md5"}, "there is no hash function 'md5'"),
        ],
    )
    def test_what_is_wrong_is_said_with_the_remedy(self, name: str, where: dict[str, str], said: str) -> None:
        with pytest.raises(ConfigurationError, match=said):
            open_queues(name, **where)  # type: ignore[arg-type]

    def test_closed_queues_take_nothing_and_closing_again_is_fine(self, queues: Queues) -> None:
        queues.create("orders")
        queues.close()
        queues.close()
        with pytest.raises(ProviderUnavailable):
            queues.publish("orders", None, b"late")
        with pytest.raises(QueueError, match="closed"):
            queues.subscribe("orders", lambda record, context: None, group="late")


class TestCreating:
    def test_each_partition_is_a_topic_and_letters_have_one(self, queues: Queues) -> None:
        queues.create("orders", 3, retention_ms=60_000, cleanup="compact,delete")
        topics = queues.provider.admin().topics()
        assert sorted(topics) == ["orders.0", "orders.1", "orders.2", "orders.dlq"]
        assert {
            (topics[f"orders.{number}"].retention_ms, topics[f"orders.{number}"].cleanup) for number in range(3)
        } == {(60_000, "compact,delete")}
        assert (topics["orders.dlq"].partitions, topics["orders.dlq"].cleanup) == (3, "delete")

    def test_partitions_can_be_inside_one_topic(self, queues: Queues) -> None:
        queues.create("orders", 3, use_internal_partition=True)
        assert {name: spec.partitions for name, spec in queues.provider.admin().topics().items()} == {
            "orders": 3,
            "orders.dlq": 3,
        }
        metadata = queues.publish("orders", ENTITY, b"x").result(DEADLINE_S)
        assert (metadata.topic, metadata.partition) == ("orders", partition_of(ENTITY, 3))

    def test_every_program_may_create_what_it_needs(self, open_embedded: OpenQueues) -> None:
        open_embedded().create("orders", 3)
        again = open_embedded()
        again.create("orders", 3)
        assert again.names() == ["orders"]
        assert again.publish("orders", None, b"x").result(DEADLINE_S).offset == 0

    def test_a_queue_never_changes_where_its_entities_go(self, queues: Queues) -> None:
        queues.create("orders", 3)
        with pytest.raises(ConfigurationError, match=r"there already with 3 partitions, not 4.*Ask for 3"):
            queues.create("orders", 4)
        with pytest.raises(ConfigurationError, match="in topics of their own"):
            queues.create("orders", 3, use_internal_partition=True)
        assert len(queues.provider.admin().topics()) == 4

    def test_what_a_creation_that_was_cut_short_left_is_completed(self, queues: Queues) -> None:
        queues.create("orders", 3)
        queues.provider.admin().delete_topics(["orders.2", "orders.dlq"])
        with pytest.raises(UnknownQueue):
            queues.publish("orders", None, b"x")
        queues.create("orders", 3)
        assert [queues.publish("orders", None, b"x").result(DEADLINE_S).topic for _ in range(3)] == [
            "orders.0",
            "orders.1",
            "orders.2",
        ]

    @pytest.mark.parametrize(
        ("there", "wanted"),
        [
            (TopicSpec("orders", 1), {}),
            (TopicSpec("orders", 4), {}),
            (TopicSpec("orders", 1), {"use_internal_partition": True}),
            (TopicSpec("orders.2", 3), {}),
            (TopicSpec("orders.dlq", 3), {}),
            (TopicSpec("orders.dlq", 3), {"use_internal_partition": True}),
        ],
    )
    def test_where_other_topics_are_in_its_place_nothing_is_created(
        self, queues: Queues, there: TopicSpec, wanted: dict[str, bool]
    ) -> None:
        queues.provider.admin().create_topics([there])
        with pytest.raises(ConfigurationError, match=f"topic '{there.name}' is there already with {there.partitions}"):
            queues.create("orders", 4, **wanted)  # type: ignore[arg-type]
        assert list(queues.provider.admin().topics()) == [there.name]
        assert queues.names() == []

    def test_the_letters_of_somebody_else_are_no_queue(self, queues: Queues) -> None:
        queues.provider.admin().create_topics([TopicSpec("legacy.dlq", 3), TopicSpec("legacy.3.dlq", 3)])
        assert queues.names() == []
        for name in ("legacy", "legacy.3"):
            with pytest.raises(UnknownQueue):
                queues.publish(name, None, b"x")

    def test_of_two_that_are_created_at_once_and_differ_one_is_refused(self, open_embedded: OpenQueues) -> None:
        for attempt in range(10):
            both, refused = threading.Barrier(2), list[int]()

            def create(queues: Queues, partitions: int, attempt: int, both: threading.Barrier, no: list[int]) -> None:
                both.wait(DEADLINE_S)
                try:
                    queues.create(f"orders-{attempt}", partitions, use_internal_partition=True)
                except ConfigurationError:
                    no.append(partitions)

            threads = [
                threading.Thread(target=create, args=(open_embedded(), partitions, attempt, both, refused))
                for partitions in (2, 9)
            ]
            for one in threads:
                one.start()
            for one in threads:
                one.join(DEADLINE_S)
            topics = open_embedded().provider.admin().topics()
            [one] = {2, 9} - set(refused)
            assert topics[f"orders-{attempt}"].partitions == topics[f"orders-{attempt}.dlq"].partitions == one

    @pytest.mark.parametrize("partitions", [2.5, "4", None, True])
    def test_partitions_are_counted_in_whole_numbers(self, queues: Queues, partitions: Any) -> None:
        with pytest.raises(ConfigurationError, match="a whole number"):
            queues.create("orders", partitions)

    def test_a_partition_that_kafka_would_take_for_another_topic_is_refused(self, queues: Queues) -> None:
        queues.create("orders")
        with pytest.raises(InvalidName, match=r"differ in '\.' and '_' alone"):
            queues.create("orders_0", use_internal_partition=True)

    @pytest.mark.parametrize("name", ["", "with space", "orders.dlq", "orders.3", "x" * 200])
    def test_a_name_that_cannot_be_is_refused(self, queues: Queues, name: str) -> None:
        with pytest.raises(InvalidName):
            queues.create(name)

    def test_a_name_that_kafka_would_take_for_another_is_refused(self, queues: Queues) -> None:
        queues.create("shop.orders")
        with pytest.raises(InvalidName, match=r"differ in '\.' and '_' alone"):
            queues.create("shop_orders")

    def test_a_queue_has_at_least_one_partition(self, queues: Queues) -> None:
        with pytest.raises(ConfigurationError, match="at least 1"):
            queues.create("orders", 0)


class TestPublishing:
    @pytest.fixture(autouse=True)
    def orders(self, queues: Queues) -> None:
        queues.create("orders", 4)

    @pytest.mark.parametrize("entity", [ENTITY, "customer-123", b"\x00\xff", ""])
    def test_an_entity_decides_the_partition(self, queues: Queues, entity: Entity) -> None:
        number = partition_of(entity, 4)
        first, second = (queues.publish("orders", entity, b"x").result(DEADLINE_S) for _ in range(2))
        assert (first.topic, second.topic) == (f"orders.{number}", f"orders.{number}")
        assert second.offset == first.offset + 1

    def test_messages_of_nobody_are_spread_evenly(self, queues: Queues) -> None:
        topics = [queues.publish("orders", None, b"x").result(DEADLINE_S).topic for _ in range(8)]
        assert topics == [f"orders.{number % 4}" for number in range(8)]

    @pytest.mark.parametrize("name", HASH_FUNCTIONS)
    def test_the_hash_function_can_be_chosen(self, open_embedded: OpenQueues, name: str) -> None:
        queues = open_embedded(hash_name=name)
        metadata = queues.publish("orders", ENTITY, b"x").result(DEADLINE_S)
        assert metadata.topic == f"orders.{partition_of(ENTITY, 4, HASH_FUNCTIONS[name])}"

    def test_the_entity_is_the_key(self, queues: Queues) -> None:
        assert published(queues, ENTITY, b"x").key == ENTITY
        assert published(queues, "customer-123", b"x").key == b"customer-123"
        assert published(queues, b"raw", b"x").key == b"raw"
        assert published(queues, None, b"x").key is None

    def test_a_message_says_who_sent_it_and_when(self, open_embedded: OpenQueues) -> None:
        record = published(open_embedded(producer_id="web-1"), ENTITY, b"x", {"level": b"INFO"})
        assert record.headers["producerId"] == b"web-1"
        assert abs(decode_millis(record.headers["ts"]) - record.timestamp_ms) < 60_000
        assert record.headers.keys() == {"producerId", "ts", "level"}

    def test_by_default_host_and_process_send(self, queues: Queues) -> None:
        record = published(queues, ENTITY, b"x")
        assert record.headers["producerId"].decode() == f"{socket.gethostname()}-{os.getpid()}"

    def test_who_passes_headers_on_is_still_the_sender(self, open_embedded: OpenQueues) -> None:
        received = published(open_embedded(producer_id="web-1"), ENTITY, b"x", {"level": b"INFO"})
        passed_on = published(open_embedded(producer_id="relay"), ENTITY, b"x", received.headers)
        assert (passed_on.headers["producerId"], passed_on.headers["level"]) == (b"relay", b"INFO")

    def test_for_debugging_it_says_from_where(self, open_embedded: OpenQueues) -> None:
        record = published(open_embedded(debug=True), ENTITY, b"x")
        assert record.headers["threadName"].decode() == threading.current_thread().name
        assert "test_for_debugging_it_says_from_where" in record.headers["stackTrace"].decode()

    def test_a_protocol_buffers_message_is_a_payload(self, queues: Queues) -> None:
        sample = OffsetSample(queue_id="7", partition=3)
        assert decode(published(queues, ENTITY, sample), OffsetSample) == sample

    @pytest.mark.parametrize("payload", ["text", None, {"a": 1}, bytearray(b"x")])
    def test_anything_else_is_refused_at_once(self, queues: Queues, payload: object) -> None:
        with pytest.raises(InvalidMessage, match="send bytes or a Protocol Buffers message"):
            queues.publish("orders", ENTITY, payload)  # type: ignore[arg-type]

    @pytest.mark.parametrize("entity", [7, ["a"], "\ud800"])
    def test_so_is_an_entity_that_is_none(self, queues: Queues, entity: object) -> None:
        with pytest.raises(InvalidMessage, match="the entity"):
            queues.publish("orders", entity, b"x")  # type: ignore[arg-type]

    def test_what_is_sent_cannot_be_taken_back(self, queues: Queues) -> None:
        stored = queues.publish("orders", ENTITY, b"x")
        assert not stored.cancel()
        assert stored.result(DEADLINE_S).offset == 0

    def test_what_is_not_stored_fails_the_future_and_is_logged(
        self, open_embedded: OpenQueues, caplog: pytest.LogCaptureFixture
    ) -> None:
        queues = open_embedded(producing=ProducerOptions(max_request_size=100, buffer_memory=1_000))
        refused = queues.publish("orders", ENTITY, bytes(200))
        assert isinstance(refused.exception(DEADLINE_S), PayloadTooLarge)
        assert queues.flush()
        assert "a published message is not stored: " in caplog.text

    def test_an_unknown_queue_is_named_with_the_one_that_may_be_meant(self, queues: Queues) -> None:
        with pytest.raises(UnknownQueue, match=r"there is no queue 'ordres'; did you mean 'orders'\?"):
            queues.publish("ordres", ENTITY, b"x")
        with pytest.raises(UnknownQueue, match="create it first; there are: orders"):
            queues.publish("zzz", ENTITY, b"x")

    def test_no_queue_takes_the_place_of_another(self, queues: Queues) -> None:
        queues.create("Main")
        queues.publish("Main", ENTITY, b"x").result(DEADLINE_S)
        with pytest.raises(UnknownQueue):
            queues.publish(str(uuid4()), ENTITY, b"x")

    def test_a_queue_created_later_by_another_program_is_found(self, open_embedded: OpenQueues, queues: Queues) -> None:
        open_embedded().create("invoices", 2)
        metadata = queues.publish("invoices", ENTITY, b"x").result(DEADLINE_S)
        assert metadata.topic == f"invoices.{partition_of(ENTITY, 2)}"


@pytest.mark.parametrize("headers", [None, 5, {"channel": "web"}, {1: b"x"}, {"channel": None}])
def test_headers_are_text_and_bytes(queues: Queues, headers: Any) -> None:
    queues.create("orders")
    with pytest.raises(InvalidMessage, match="header"):
        queues.publish("orders", None, b"x", headers)
