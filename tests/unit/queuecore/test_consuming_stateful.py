"""Queues whose handlers remember something, on each embedded provider."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from queuecore import DeliveryContext, ProcessingStrategy, Queues, Record, Subscription
from queuecore.consuming.states import RESTORING
from queuecore.errors import ConfigurationError
from queuecore.messages import QueueMessage
from queuecore.processing import ProcessingStrategyType
from queuecore.providers.log import LogProvider
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo, state_partition
from tests.unit.queuecore.conftest import OpenQueues

AT_ONCE = ProcessingStrategy(ProcessingStrategyType.RETRY_FAILED, pause_ms=0)
BOTH = pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])


def count(record: Record, context: DeliveryContext) -> None:
    """How many messages each entity had."""
    context.state.put(record.key, b"%d" % (int(context.state.get(record.key) or 0) + 1))


def publish(queues: Queues, *entities: str) -> None:
    for entity in entities:
        queues.publish("in", entity, entity.encode())
    assert queues.flush()


def counted(queues: Queues, partition: int = 0) -> dict[str, int]:
    """What is stored, of each key the last."""
    found: dict[str, int] = {}
    with closing(queues.provider.reader()) as reader:
        for record in reader.read(TopicPartitionInfo("states", partition).place, 0, 10_000):
            assert isinstance(record.key, bytes)
            if record.is_tombstone:
                found.pop(record.key.decode(), None)
            else:
                found[record.key.decode()] = int(record.data)
    return found


@pytest.fixture
def stateful(queues: Queues) -> Queues:
    queues.create("in")
    queues.create("states", cleanup="compact")
    return queues


def subscribe(queues: Queues, handler: Callable[..., object], **options: object) -> Subscription:
    given = {"group": "g", "processing": AT_ONCE, "state_queue": "states", **options}
    return queues.subscribe("in", handler, **given)  # type: ignore[arg-type]


class TestThroughTheFacade:
    @BOTH
    def test_it_is_there_again_for_whoever_comes_next(self, stateful: Queues, delivery: str) -> None:
        for _ in range(3):
            publish(stateful, "a", "b", "a")
            with subscribe(stateful, count, delivery=delivery) as counting:
                assert counting.drain()
        assert counted(stateful) == {"a": 6, "b": 3}

    @BOTH
    @pytest.mark.parametrize("submit", ["BURST", "BATCH", "SEQUENTIAL_BY_TENANT"])
    def test_handlers_side_by_side_lose_nothing(self, stateful: Queues, delivery: str, submit: str) -> None:
        meeting = threading.Barrier(2)

        def count_together(record: Record, context: DeliveryContext) -> None:
            count(record, context)
            if record.offset < 2 and context.attempt == 1 and submit != "SEQUENTIAL_BY_TENANT":
                meeting.wait(DEADLINE_S)

        publish(stateful, *["a"] * 50)
        with subscribe(stateful, count_together, delivery=delivery, submit=submit) as counting:
            assert counting.drain()
        assert counted(stateful) == {"a": 50}

    @BOTH
    def test_one_that_fails_leaves_nothing(self, stateful: Queues, delivery: str) -> None:
        def count_at_last(record: Record, context: DeliveryContext) -> None:
            count(record, context)
            context.state.delete(b"other")
            if record.data == b"bad" or context.attempt < 3:
                raise ValueError("after it has changed something")

        publish(stateful, "a", "bad", "a")
        with subscribe(stateful, count_at_last, delivery=delivery) as counting:
            assert counting.drain()
            assert counting.counts.dead_lettered == 1
        assert counted(stateful) == {"a": 2}

    @BOTH
    def test_a_pack_that_is_tried_again_counts_once(self, stateful: Queues, delivery: str) -> None:
        def count_at_last(record: Record, context: DeliveryContext) -> None:
            count(record, context)
            if record.data == b"c" and context.attempt < 3:
                raise ValueError("the last of the pack")

        publish(stateful, "a", "b", "a", "c")
        retry_all = ProcessingStrategy(ProcessingStrategyType.RETRY_ALL, pause_ms=0)
        with subscribe(stateful, count_at_last, delivery=delivery, submit="BURST", processing=retry_all) as counting:
            assert counting.drain()
        assert counted(stateful) == {"a": 2, "b": 1, "c": 1}

    @BOTH
    def test_what_is_too_late_changes_nothing(self, stateful: Queues, delivery: str) -> None:
        go_on, gone_on = threading.Event(), threading.Event()

        def overrun(record: Record, context: DeliveryContext) -> None:
            count(record, context)
            if record.data == b"slow":
                go_on.wait(DEADLINE_S)
                gone_on.set()

        publish(stateful, "slow", "a")
        skip = ProcessingStrategy(ProcessingStrategyType.SKIP_ALL_FAILURES)
        options = {"delivery": delivery, "submit": "BURST", "processing": skip, "timeout_s": 0.05}
        with subscribe(stateful, overrun, **options) as counting:
            assert counting.drain()
            go_on.set()
            assert gone_on.wait(DEADLINE_S)
            publish(stateful, "a")
            assert counting.drain()
        assert counted(stateful) == {"a": 2}

    @BOTH
    def test_what_is_put_off_or_taken_back_is_not_remembered(self, stateful: Queues, delivery: str) -> None:
        def hesitate(record: Record, context: DeliveryContext) -> None:
            count(record, context)
            if record.data == b"a" and context.attempt == 1:
                context.postpone(0)
            elif record.data == b"b":
                context.unsend()

        publish(stateful, "a", "b")
        with subscribe(stateful, hesitate, delivery=delivery) as counting:
            assert counting.drain()
        assert counted(stateful) == {"a": 1}

    @BOTH
    def test_deleted_keys_stay_deleted(self, stateful: Queues, delivery: str) -> None:
        def toggle(record: Record, context: DeliveryContext) -> None:
            if context.state.get(record.data) is None:
                context.state.put(record.data, b"1")
            else:
                context.state.delete(record.data)

        for entities in (["a", "b"], ["a"]):
            publish(stateful, *entities)
            with subscribe(stateful, toggle, delivery=delivery) as toggling:
                assert toggling.drain()
        assert counted(stateful) == {"b": 1}

    @BOTH
    def test_async_handlers_remember_too(self, stateful: Queues, delivery: str) -> None:
        async def count_async(record: Record, context: DeliveryContext) -> None:
            count(record, context)

        publish(stateful, *["a"] * 20)
        with subscribe(stateful, count_async, delivery=delivery, submit="BURST") as counting:
            assert counting.drain()
        assert counted(stateful) == {"a": 20}

    def test_it_says_how_much_it_remembers(self, stateful: Queues) -> None:
        publish(stateful, "a", "bb", "a")
        with subscribe(stateful, count) as counting:
            assert counting.drain()
            assert (counting.state_entries, counting.state_bytes) == (2, 1 + 1 + 2 + 1)


class TestWhatCannotBeStored:
    @pytest.fixture
    def stateful(self, open_embedded: OpenQueues) -> Queues:
        queues = open_embedded(ProducerOptions(max_request_size=10_000))
        queues.create("in")
        queues.create("out")
        queues.create("states", cleanup="compact")
        return queues

    @BOTH
    @pytest.mark.parametrize("too_large", ["output", "state"])
    def test_the_message_becomes_a_letter_and_leaves_nothing(
        self, stateful: Queues, delivery: str, too_large: str
    ) -> None:
        def overdo(record: Record, context: DeliveryContext) -> None:
            count(record, context)
            context.send("out", None, bytes(20_000 if (record.data, too_large) == (b"bad", "output") else 1))
            if (record.data, too_large) == (b"bad", "state"):
                context.state.put(b"large", bytes(20_000))

        publish(stateful, "a", "a", "bad", "a", "b")
        with subscribe(stateful, overdo, delivery=delivery) as counting:
            assert counting.drain()
        [letter] = stateful.dead_letters("in")
        assert letter.message.data == b"bad"
        assert "cannot be stored" in str(letter.story.exception_message)
        found = counted(stateful)
        assert found.keys() == {"a", "b"}
        if delivery == "exactly_once":
            assert found == {"a": 3, "b": 1}


class TestRefusedConfigurations:
    def test_the_queue_has_to_be_divided_alike(self, stateful: Queues) -> None:
        stateful.create("more", 2, cleanup="compact")
        stateful.create("inside", cleanup="compact", use_internal_partition=True)
        stateful.create("forgetful")
        for name, reason in {
            "more": "2 partitions",
            "inside": "use_internal",
            "forgetful": "compact",
            "in": "own",
        }.items():
            with pytest.raises(ConfigurationError, match=reason):
                subscribe(stateful, count, state_queue=name)

    def test_at_most_once_keeps_no_state(self, stateful: Queues) -> None:
        with pytest.raises(ConfigurationError, match="at_most_once"):
            subscribe(stateful, count, delivery="at_most_once")

    def test_a_queue_without_state_says_so(self, stateful: Queues) -> None:
        publish(stateful, "a")
        skip = ProcessingStrategy(ProcessingStrategyType.SKIP_ALL_FAILURES)
        with subscribe(stateful, count, state_queue="", processing=skip) as counting:
            assert counting.drain()
        [letter] = stateful.dead_letters("in")
        assert "keeps no state" in str(letter.story.exception_message)


def test_a_partition_waits_for_its_state_and_holds_up_no_other(tmp_path: Path) -> None:
    """What the last owner has stored is not decided: nobody knows what the state is."""
    with Queues(
        LogProvider(tmp_path, ProducerOptions(batch_size=1_000, buffer_memory=10_000, max_request_size=5_000))
    ) as queues:
        queues.create("in", 2)
        queues.create("states", 2, cleanup="compact")
        first, second = (TopicPartitionInfo("in", number) for number in range(2))
        with queues.provider.transactional_producer("elsewhere").begin() as undecided:
            state = state_partition(first, "states")
            while queues.provider.admin().end_offsets([state.place])[state.place] == 0:
                undecided.send(state, QueueMessage(b"a", b"%1000d" % 41))
            for info in (first, second):
                send_and_wait(queues.provider.producer(), info, QueueMessage(b"a", b"x"), DEADLINE_S)
            with subscribe(queues, count, delivery="exactly_once") as counting:
                wait_until(lambda: counting.counts.handled == 1 and counting.paused == {0: RESTORING})
                # An operator cannot have it go on.
                counting.resume()
                send_and_wait(queues.provider.producer(), second, QueueMessage(b"a", b"x"), DEADLINE_S)
                wait_until(lambda: counting.counts.handled == 2)
                assert counting.paused == {0: RESTORING}
                undecided.commit()
                assert counting.drain()
                assert counting.paused == {}
        assert (counted(queues, 0), counted(queues, 1)) == ({"a": 42}, {"a": 2})
