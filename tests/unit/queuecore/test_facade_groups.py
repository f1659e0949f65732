"""What a group gets: from where it begins, in what portions, and which replays."""

import threading
from collections import defaultdict
from collections.abc import Callable

import pytest

from queuecore import (
    ConsumerOptions,
    DeliveryContext,
    PayloadMissing,
    ProcessingStrategy,
    ProcessingStrategyType,
    ProducerOptions,
    ProviderPartition,
    Queues,
    Record,
    SubscriptionCounts,
)
from queuecore.deadletter.replay import REPLAY_GROUP
from queuecore.messages import REPLAY_ID, REPLAY_LETTER
from queuecore.testing.waiting import DEADLINE_S, wait_until

OpenQueues = Callable[..., Queues]
NO_RETRY = ProcessingStrategy(ProcessingStrategyType.SKIP_ALL_FAILURES)


def publish(queues: Queues, entity: str, numbers: range) -> None:
    for stored in [queues.publish("orders", entity, str(number).encode()) for number in numbers]:
        stored.result(DEADLINE_S)


class TestAtMostOnce:
    def test_only_a_small_portion_is_committed_ahead(self, queues: Queues) -> None:
        queues.create("orders")
        publish(queues, "a", range(250))
        under_way, free = threading.Event(), threading.Event()

        def wait(record: Record, context: DeliveryContext) -> None:
            under_way.set()
            assert free.wait(DEADLINE_S)

        with queues.subscribe("orders", wait, group="g", delivery="at_most_once") as subscription:
            assert under_way.wait(DEADLINE_S)
            place = ProviderPartition("orders.0", 0)
            assert queues.provider.admin().committed_offsets({"g": [place]}) == {"g": {place: 100}}
            free.set()
            assert subscription.drain(DEADLINE_S)
        assert subscription.counts == SubscriptionCounts(handled=250)

    def test_a_partition_that_moves_keeps_its_order(self, open_embedded: OpenQueues) -> None:
        queues, other = open_embedded(), open_embedded()
        queues.create("orders", 2)
        entities = ("a", "b", "c", "d")
        for entity in entities:
            publish(queues, entity, range(60))
        free, done = threading.Event(), threading.Lock()
        order: dict[bytes, list[int]] = defaultdict(list)

        def note(record: Record, context: DeliveryContext) -> None:
            assert free.wait(DEADLINE_S)
            with done:
                order[bytes(record.key)].append(int(record.data))  # type: ignore[arg-type]

        first = queues.subscribe("orders", note, group="g", delivery="at_most_once")
        wait_until(lambda: len(first.partitions) == 2)
        second = other.subscribe("orders", note, group="g", delivery="at_most_once")
        for entity in entities:
            publish(queues, entity, range(60, 90))
        wait_until(lambda: len(queues.provider.admin().groups()["g"].members) == 2)
        free.set()
        wait_until(lambda: len(second.partitions) == 1)
        wait_until(lambda: sum(len(numbers) for numbers in order.values()) == 4 * 90)
        assert dict(order) == {entity.encode(): list(range(90)) for entity in entities}
        first.stop()
        second.stop()


class TestBeginningAtTheEnd:
    @pytest.fixture
    def latest(self, open_embedded: OpenQueues) -> Queues:
        return open_embedded(consuming=ConsumerOptions(auto_offset_reset="latest"), auto_offset_reset="latest")

    def test_draining_ends(self, latest: Queues) -> None:
        latest.create("orders", 2)
        publish(latest, "a", range(5))
        seen: list[bytes] = []
        with latest.subscribe("orders", lambda record, context: seen.append(record.data), group="g") as subscription:
            assert subscription.drain(DEADLINE_S)
            publish(latest, "a", range(5, 7))
            assert subscription.drain(DEADLINE_S)
        assert seen == [b"5", b"6"]

    def test_what_comes_while_nobody_is_there_is_not_missed(self, latest: Queues) -> None:
        latest.create("orders")
        seen: list[bytes] = []
        with latest.subscribe("orders", lambda record, context: None, group="g") as subscription:
            assert subscription.drain(DEADLINE_S)
            wait_until(lambda: subscription.partitions)
        publish(latest, "a", range(1))
        with latest.subscribe("orders", lambda record, context: seen.append(record.data), group="g") as subscription:
            assert subscription.drain(DEADLINE_S)
        assert seen == [b"0"]


class TestReplaying:
    def test_only_the_group_that_gave_it_up_handles_it_again(self, queues: Queues) -> None:
        queues.create("orders", 3)
        is_mended = threading.Event()
        billed: list[Record] = []
        contexts: list[DeliveryContext] = []
        shipped: list[bytes] = []

        def bill(record: Record, context: DeliveryContext) -> None:
            if not is_mended.is_set():
                raise ValueError("no price")
            billed.append(record)
            contexts.append(context)

        billing = queues.subscribe("orders", bill, group="billing", processing=NO_RETRY)
        shipping = queues.subscribe("orders", lambda record, context: shipped.append(record.data), group="shipping")
        stored = queues.publish("orders", None, b"pears", {"channel": b"web"}).result(DEADLINE_S)
        assert billing.drain(DEADLINE_S)
        is_mended.set()
        [letter] = queues.dead_letters("orders")
        replayed = queues.replay(letter).result(DEADLINE_S)
        assert (replayed.topic, replayed.partition) == (stored.topic, stored.partition)
        assert billing.drain(DEADLINE_S)
        assert shipping.drain(DEADLINE_S)
        assert shipped == [b"pears"]
        assert shipping.counts == SubscriptionCounts(handled=1, skipped=1)
        assert billing.counts == SubscriptionCounts(handled=1, dead_lettered=1)
        [record] = billed
        assert (record.data, record.headers["channel"]) == (b"pears", b"web")
        assert {REPLAY_ID, REPLAY_LETTER, REPLAY_GROUP} < record.headers.keys()
        assert contexts[0].replayed_letter == f"orders.dlq[{letter.record.partition}]@0"

    def test_a_letter_without_its_payload_cannot_be(self, queues: Queues) -> None:
        def fail(record: Record, context: DeliveryContext) -> None:
            raise ValueError("no")

        queues.create("orders")
        queues.publish("orders", None, b"x" * (ProducerOptions().max_request_size - 200)).result(DEADLINE_S)
        with queues.subscribe("orders", fail, group="g", processing=NO_RETRY) as subscription:
            assert subscription.drain(DEADLINE_S)
        queues.provider.admin().delete_topics(["orders.dlq.payloads"])
        [letter] = queues.dead_letters("orders")
        with pytest.raises(PayloadMissing, match=r"without its payload; read it at orders\.0\[0\]@0"):
            queues.replay(letter)
