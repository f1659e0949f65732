"""Handlers that run for a queue: order, groups, failures, and what becomes of a subscription."""

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from queuecore import (
    ConfigurationError,
    ConsumerOptions,
    DeliveryContext,
    ProcessingStrategy,
    ProcessingStrategyType,
    ProviderUnavailable,
    Queues,
    Record,
    Subscription,
    SubscriptionCounts,
    UnknownQueue,
    UnknownTopic,
)
from queuecore.consuming.delivering import Deliverer
from queuecore.providers.log.consumer import LogConsumer
from queuecore.providers.memory.consumer import MemoryConsumer
from queuecore.testing.waiting import DEADLINE_S, wait_until

OpenQueues = Callable[..., Queues]
AT_ONCE = ProcessingStrategy(ProcessingStrategyType.RETRY_FAILED, retries=2, pause_ms=0)
NO_RETRY = ProcessingStrategy(ProcessingStrategyType.SKIP_ALL_FAILURES)
LONG_PAUSE = ProcessingStrategy(ProcessingStrategyType.RETRY_FAILED, retries=9, pause_ms=60_000, max_pause_ms=60_000)


@dataclass
class Desk:
    """A handler that notes what it is given, and does as it is told."""

    act: Callable[[Record, DeliveryContext], None] = lambda record, context: None
    seen: list[tuple[str, int]] = field(default_factory=list)
    by_key: dict[bytes, list[str]] = field(default_factory=lambda: defaultdict(list))
    threads: set[str] = field(default_factory=set)

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        self.threads.add(threading.current_thread().name)
        self.seen.append((record.data.decode(), context.attempt))
        self.act(record, context)
        if isinstance(record.key, bytes):
            self.by_key[record.key].append(record.data.decode())

    @property
    def data(self) -> list[str]:
        return [data for data, _ in self.seen]


def fail_on(*data: str, until_attempt: int = 99) -> Callable[[Record, DeliveryContext], None]:
    def act(record: Record, context: DeliveryContext) -> None:
        if record.data.decode() in data and context.attempt < until_attempt:
            raise ValueError(f"cannot take {record.data.decode()}")

    return act


@pytest.fixture(autouse=True)
def orders(queues: Queues) -> None:
    queues.create("orders", 4)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def subscribe(queues: Queues) -> Iterator[Callable[..., Subscription]]:
    """Makes subscriptions that are stopped at the end."""
    with ExitStack() as stack:

        def make(
            handler: Any, queues: Queues = queues, queue: str = "orders", group: str = "g", **options: Any
        ) -> Subscription:
            return stack.enter_context(queues.subscribe(queue, handler, group=group, **options))

        yield make


Subscribe = Callable[..., Subscription]


def publish(queues: Queues, *data: str, entity: str = "one") -> None:
    for stored in [queues.publish("orders", entity, one.encode()) for one in data]:
        stored.result(DEADLINE_S)


class TestHandling:
    def test_messages_of_an_entity_come_in_order(self, queues: Queues, subscribe: Subscribe, desk: Desk) -> None:
        for number in range(50):
            for entity in ("a", "b", "c"):
                queues.publish("orders", entity, str(number).encode())
        queues.flush()
        subscription = subscribe(desk)
        assert subscription.drain()
        in_order = [str(number) for number in range(50)]
        assert desk.by_key == {b"a": in_order, b"b": in_order, b"c": in_order}
        assert subscription.counts == SubscriptionCounts(handled=150)

    def test_handlers_run_on_threads_of_the_subscriptions_own(
        self, queues: Queues, subscribe: Subscribe, desk: Desk
    ) -> None:
        subscription = subscribe(desk)
        publish(queues, "1")
        assert subscription.drain()
        publish(queues, "2")
        assert subscription.drain()
        assert all(name.startswith("orders-g-handler-") for name in desk.threads)

    def test_a_handler_knows_where_its_message_comes_from(self, queues: Queues, subscribe: Subscribe) -> None:
        contexts: list[DeliveryContext] = []
        metadata = queues.publish("orders", "one", b"x", {"tenantId": b"t"}).result(DEADLINE_S)
        assert subscribe(lambda record, context: contexts.append(context)).drain()
        [context] = contexts
        assert (context.queue, context.partition, context.attempt) == ("orders", int(metadata.topic[-1]), 1)
        assert (context.tenant_id, context.replayed_letter) == ("t", None)

    def test_draining_waits_for_what_is_there_now(self, queues: Queues, subscribe: Subscribe) -> None:
        free = threading.Event()
        desk = Desk(lambda record, context: _wait(free))
        subscription = subscribe(desk)
        assert subscription.drain(), "there is nothing"
        publish(queues, "1", "2")
        assert not subscription.drain(timeout_s=0.01)
        free.set()
        assert subscription.drain()
        assert desk.data == ["1", "2"]

    def test_a_queue_that_is_not_there_cannot_be_subscribed_to(self, queues: Queues, desk: Desk) -> None:
        with pytest.raises(UnknownQueue, match="did you mean 'orders'"):
            queues.subscribe("order", desk, group="g")
        with pytest.raises(ConfigurationError, match="needs a group"):
            queues.subscribe("orders", desk, group="")
        with pytest.raises(ConfigurationError, match="at_most_once, at_least_once, exactly_once"):
            queues.subscribe("orders", desk, group="g", delivery="twice")


class TestGroups:
    def test_each_group_gets_everything(self, queues: Queues, subscribe: Subscribe) -> None:
        desks = {name: Desk() for name in ("billing", "shipping")}
        publish(queues, "1", "2")
        for subscription in [subscribe(desk, group=name) for name, desk in desks.items()]:
            assert subscription.drain()
        assert {name: desk.data for name, desk in desks.items()} == {"billing": ["1", "2"], "shipping": ["1", "2"]}

    def test_a_group_goes_on_where_it_was(
        self, open_embedded: OpenQueues, queues: Queues, subscribe: Subscribe
    ) -> None:
        first, second = Desk(), Desk()
        publish(queues, "1", "2")
        subscription = subscribe(first)
        assert subscription.drain()
        assert subscription.stop()
        publish(queues, "3")
        assert subscribe(second, open_embedded()).drain()
        assert (first.data, second.data) == (["1", "2"], ["3"])

    def test_subscribers_of_a_group_share_the_partitions(
        self, open_embedded: OpenQueues, queues: Queues, subscribe: Subscribe
    ) -> None:
        desks = [Desk(), Desk()]
        first, second = subscribe(desks[0]), subscribe(desks[1], open_embedded())
        wait_until(lambda: len(first.partitions) == 2 and len(second.partitions) == 2)
        assert first.partitions | second.partitions == {0, 1, 2, 3}
        for number in range(20):
            for entity in range(10):
                queues.publish("orders", f"{entity}", str(number).encode())
        queues.flush()
        assert first.drain()
        assert second.drain()
        in_order = [str(number) for number in range(20)]
        assert not desks[0].by_key.keys() & desks[1].by_key.keys()
        assert all(numbers == in_order for desk in desks for numbers in desk.by_key.values())
        assert len({**desks[0].by_key, **desks[1].by_key}) == 10

    def test_who_leaves_gives_its_partitions_to_the_others(
        self, open_embedded: OpenQueues, queues: Queues, subscribe: Subscribe, desk: Desk
    ) -> None:
        first, second = subscribe(Desk()), subscribe(desk, open_embedded())
        wait_until(lambda: len(second.partitions) == 2)
        assert first.stop()
        assert (first.partitions, first.is_running) == (frozenset(), False)
        wait_until(lambda: len(second.partitions) == 4)
        publish(queues, "1")
        assert second.drain()
        assert desk.data == ["1"]

    def test_a_partition_can_move_while_a_handler_is_busy(
        self, open_embedded: OpenQueues, subscribe: Subscribe
    ) -> None:
        """Of what the busy one has to give away, at most the messages at hand are handled again."""
        queues, free = open_embedded(consuming=ConsumerOptions(session_timeout_ms=1_000)), threading.Event()
        slow, quick = Desk(lambda record, context: _wait(free)), Desk()
        for number in range(40):
            queues.publish("orders", None, str(number).encode())
        queues.flush()
        first = subscribe(slow, queues)
        wait_until(lambda: slow.seen)
        second = subscribe(quick, open_embedded())
        wait_until(lambda: len(quick.seen) >= 20)
        at_hand = {*slow.data}
        assert len(at_hand) <= 4, "one of each partition"
        free.set()
        assert first.drain()
        assert second.drain()
        assert sorted({*map(int, slow.data + quick.data)}) == list(range(40))
        assert {*slow.data} & {*quick.data} <= at_hand

    def test_a_message_may_take_longer_than_the_groups_patience(
        self, open_embedded: OpenQueues, subscribe: Subscribe
    ) -> None:
        impatient = ConsumerOptions(session_timeout_ms=300)
        queues, free = open_embedded(consuming=impatient), threading.Event()
        queues.create("slow", 1)
        slow, other = Desk(lambda record, context: _wait(free)), Desk()
        queues.publish("slow", None, b"1").result(DEADLINE_S)
        first = subscribe(slow, queues, queue="slow")
        wait_until(lambda: slow.seen)
        second = subscribe(other, open_embedded(consuming=impatient), queue="slow")
        patience_is_over = time.monotonic() + 3 * 0.3
        wait_until(lambda: time.monotonic() > patience_is_over)
        assert (first.partitions, second.partitions) == ({0}, frozenset())
        free.set()
        assert first.drain()
        assert (slow.data, other.data) == (["1"], [])


class TestFailing:
    def test_a_message_that_fails_is_tried_again_before_the_next(
        self, queues: Queues, subscribe: Subscribe, desk: Desk
    ) -> None:
        desk.act = fail_on("2", until_attempt=3)
        publish(queues, "1", "2", "3")
        subscription = subscribe(desk, processing=AT_ONCE)
        assert subscription.drain()
        assert desk.seen == [("1", 1), ("2", 1), ("2", 2), ("2", 3), ("3", 1)]
        assert subscription.counts == SubscriptionCounts(handled=3, retried=2)
        assert list(queues.dead_letters("orders")) == []

    def test_one_that_keeps_failing_becomes_a_letter_and_holds_up_nothing(
        self, queues: Queues, subscribe: Subscribe, desk: Desk
    ) -> None:
        desk.act = fail_on("bad")
        publish(queues, "bad", "good")
        subscription = subscribe(desk, processing=AT_ONCE)
        assert subscription.drain()
        assert desk.seen == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
        assert subscription.counts == SubscriptionCounts(handled=1, retried=2, dead_lettered=1)
        [letter] = queues.dead_letters("orders")
        assert (letter.message.key, letter.message.data) == (b"one", b"bad")
        assert letter.message.headers.keys() == {"producerId", "ts"}
        story = letter.story
        assert (story.queue_id, story.group, story.handler) == ("orders", "g", "Desk")
        assert (story.reason, story.attempts) == ("retries_exhausted", 3)
        assert (story.exception_class, story.exception_message) == ("ValueError", "cannot take bad")
        assert story.first_failed_at_ms <= story.failed_at_ms
        assert story.topic == f"orders.{letter.record.partition}"

    def test_a_letter_can_be_published_again(self, queues: Queues, subscribe: Subscribe, desk: Desk) -> None:
        desk.act = fail_on("bad")
        publish(queues, "bad")
        subscription = subscribe(desk, processing=NO_RETRY)
        assert subscription.drain()
        desk.act = fail_on()
        for letter in queues.dead_letters("orders"):
            queues.publish("orders", *letter.message).result(DEADLINE_S)
        assert subscription.drain()
        assert desk.by_key == {b"one": ["bad"]}

    def test_a_handler_that_asks_for_the_end_of_the_process_has_failed(
        self, queues: Queues, subscribe: Subscribe, desk: Desk
    ) -> None:
        def leave(record: Record, context: DeliveryContext) -> None:
            raise SystemExit(3)

        desk.act = leave
        publish(queues, "bad")
        assert subscribe(desk, processing=AT_ONCE).drain()
        [letter] = queues.dead_letters("orders")
        assert letter.story.exception_class == "SystemExit"


class TestStopping:
    def test_the_message_at_hand_is_finished_and_the_rest_left_to_the_next(
        self, queues: Queues, subscribe: Subscribe
    ) -> None:
        free = threading.Event()
        first, second = Desk(lambda record, context: _wait(free)), Desk()
        publish(queues, "1", "2", "3")
        subscription = subscribe(first)
        wait_until(lambda: first.seen)
        stopper = threading.Thread(target=subscription.stop)
        stopper.start()
        wait_until(lambda: subscription._consumption._stopping.is_set())
        free.set()
        stopper.join(DEADLINE_S)
        assert not subscription.is_running
        assert subscribe(second).drain()
        assert (first.data, second.data) == (["1"], ["2", "3"])

    def test_a_handler_may_say_that_it_is_enough(self, queues: Queues, subscribe: Subscribe) -> None:
        def enough(record: Record, context: DeliveryContext) -> None:
            if record.data == b"2":
                assert subscription.stop()

        first, second = Desk(enough), Desk()
        subscription = subscribe(first)
        publish(queues, "1", "2", "3")
        assert subscription.wait(DEADLINE_S)
        assert subscribe(second).drain()
        assert (first.data, second.data) == (["1", "2"], ["3"])

    def test_a_stopped_subscription_knows_whether_all_is_done(self, queues: Queues, subscribe: Subscribe) -> None:
        stopped = subscribe(Desk())
        assert stopped.stop()
        assert stopped.drain()
        publish(queues, "1")
        assert not stopped.drain(timeout_s=0.01)

    def test_a_handler_that_does_not_return_is_left_behind(
        self, queues: Queues, subscribe: Subscribe, caplog: pytest.LogCaptureFixture
    ) -> None:
        free = threading.Event()
        stuck, second = Desk(lambda record, context: _wait(free)), Desk()
        publish(queues, "1")
        subscription = subscribe(stuck)
        wait_until(lambda: stuck.seen)
        assert not subscription.stop(timeout_s=0.05)
        assert not subscription.is_running
        assert "handlers were left behind" in caplog.text
        assert subscribe(second).drain()
        free.set()
        assert second.data == ["1"], "what was left behind is not done"

    def test_stopping_between_two_attempts_gives_nothing_up(self, queues: Queues, subscribe: Subscribe) -> None:
        failing, second = Desk(fail_on("1")), Desk()
        publish(queues, "1", "2")
        subscription = subscribe(failing, processing=LONG_PAUSE)
        wait_until(lambda: failing.seen)
        assert subscription.stop()
        assert subscribe(second).drain()
        assert (failing.data, second.data) == (["1"], ["1", "2"])
        assert list(queues.dead_letters("orders")) == []

    def test_closing_the_queues_stops_their_subscriptions(self, queues: Queues, desk: Desk) -> None:
        subscription = queues.subscribe("orders", desk, group="g")
        queues.close()
        assert not subscription.is_running
        assert subscription.wait()


class TestErrors:
    def break_letters(self, queues: Queues) -> None:
        queues.provider.admin().delete_topics(["orders.dlq"])
        publish(queues, "bad")

    def test_what_cannot_be_mended_ends_the_subscription_and_loses_nothing(
        self, queues: Queues, desk: Desk, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk.act = fail_on("bad")
        subscription = queues.subscribe("orders", desk, group="g", processing=NO_RETRY)
        self.break_letters(queues)
        with pytest.raises(UnknownTopic):
            subscription.wait(DEADLINE_S)
        assert isinstance(subscription.error, UnknownTopic)
        assert not subscription.is_running
        assert "orders-g: consuming has ended: " in caplog.text
        for surface in (subscription.stop, subscription.drain):
            with pytest.raises(UnknownTopic):
                surface()

        queues.create("orders", 4)
        desk.act = fail_on()
        with queues.subscribe("orders", desk, group="g") as again:
            assert again.drain()
        assert desk.by_key == {b"one": ["bad"]}

    def test_leaving_the_block_raises_it(self, queues: Queues, desk: Desk) -> None:
        desk.act = fail_on("bad")

        def use() -> None:
            with queues.subscribe("orders", desk, group="g", processing=NO_RETRY) as broken:
                self.break_letters(queues)
                wait_until(lambda: not broken.is_running)

        with pytest.raises(UnknownTopic):
            use()

    def test_but_hides_no_other_exception(self, queues: Queues, desk: Desk) -> None:
        desk.act = fail_on("bad")

        def use() -> None:
            with queues, queues.subscribe("orders", desk, group="g", processing=NO_RETRY) as broken:
                self.break_letters(queues)
                wait_until(lambda: not broken.is_running)
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            use()

    def test_closing_the_queues_raises_what_nobody_has_seen(self, queues: Queues, desk: Desk) -> None:
        desk.act = fail_on("bad")
        broken = queues.subscribe("orders", desk, group="g", processing=NO_RETRY)
        self.break_letters(queues)
        wait_until(lambda: not broken.is_running)
        with pytest.raises(UnknownTopic):
            queues.close()

    def test_a_defect_of_ours_is_not_hidden_either(
        self, queues: Queues, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def be_broken(*_: object) -> None:
            raise RuntimeError("a defect")

        monkeypatch.setattr(Deliverer, "work_on", be_broken)
        subscription = queues.subscribe("orders", desk, group="g")
        publish(queues, "1")
        with pytest.raises(RuntimeError, match="a defect"):
            subscription.wait(DEADLINE_S)
        assert desk.seen == []

    def test_an_outage_ends_nothing(
        self,
        queues: Queues,
        subscribe: Subscribe,
        desk: Desk,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """What was handled and could not be committed comes again."""
        outages = iter(["the disk is full"])
        for kind in (LogConsumer, MemoryConsumer):
            monkeypatch.setattr(kind, "commit", _failing(kind.commit, outages))
        publish(queues, "1", "2")
        subscription = subscribe(desk)
        assert subscription.drain()
        assert desk.data == ["1", "2", "1", "2"]
        assert (subscription.is_running, subscription.error) == (True, None)
        assert "the disk is full; joins its group again in 0.2 s" in caplog.text

    def test_it_can_be_stopped_during_an_outage(
        self, queues: Queues, subscribe: Subscribe, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outages = itertools.repeat("the disk is full")
        for kind in (LogConsumer, MemoryConsumer):
            monkeypatch.setattr(kind, "commit", _failing(kind.commit, outages))
        publish(queues, "1")
        subscription = subscribe(desk)
        wait_until(lambda: desk.seen)
        assert not subscription.stop(), "what was handled comes again"
        assert not subscription.is_running


def _failing(commit: Callable[..., None], outages: Iterator[str]) -> Callable[..., None]:
    def fail_first(*arguments: object) -> None:
        for outage in outages:
            raise ProviderUnavailable(outage)
        commit(*arguments)

    return fail_first


def _wait(event: threading.Event) -> None:
    assert event.wait(DEADLINE_S)
