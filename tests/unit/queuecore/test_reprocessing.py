"""The reprocessing queue: attempts, delay, errors remembered, and the end."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as some

from queuecore import DeliveryContext, MessageHandler, Queues
from queuecore.consuming.context import OpenDelivery, Workplace
from queuecore.consuming.delivering import is_async
from queuecore.deadletter.replay import REPLAY_GROUP
from queuecore.deadletter.reprocessing import ATTEMPT, DUE_AT_MS, ERRORS, History, ReprocessingPolicy, reprocessed
from queuecore.errors import ConfigurationError, GivenUp, UndecodableMessage
from queuecore.messages import REPLAY_COUNT, REPLAY_LETTER, REPLAY_PREFIX, QueueMessage, Record
from queuecore.queues.composing import Composer as RealComposer
from queuecore.sending import Addressed
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo

POLICY = ReprocessingPolicy()


class Composer:
    """Addresses everything to a topic called like the queue."""

    def compose(self, queue, entity, payload, headers=None) -> Addressed:
        return Addressed(TopicPartitionInfo(queue), QueueMessage(entity, payload, headers))


class Directory:
    def resolve(self, queue, entity) -> TopicPartitionInfo:
        return TopicPartitionInfo(queue)


def record_of(history: History | None = None, sent_at_ms: int = 1_000) -> Record:
    headers = {"kind": b"DELETE_EVENTS", **(history.headers() if history else {})}
    return Record("tb_housekeeper", 0, 0, sent_at_ms, b"device", headers, b"task")


def delivery(record: Record) -> OpenDelivery:
    return OpenDelivery(Workplace("Housekeeper", {}, Composer()), record, 1)


def failing(record, context) -> None:
    context.send("elsewhere", None, b"half of the work")
    raise ValueError("the disk is full")


def test_what_fails_is_sent_to_be_tried_again_with_its_history_and_nothing_else() -> None:
    record, clock = record_of(), ManualClock(now_ms=1_000)
    context = delivery(record)
    reprocessed(failing, POLICY, clock)(record, context)
    [(info, message)] = context.close()
    assert (info.topic, message.key, message.data) == ("HousekeeperReprocessing", b"device", b"task")
    assert message.headers["kind"] == b"DELETE_EVENTS"
    assert History.of(message.headers) == History(1, 4_000, ("ValueError: the disk is full",))


def test_a_replay_that_fails_again_stays_one_and_is_everybodys_in_the_second_queue() -> None:
    """Whose replay it was for is a group of the first queue's."""
    record = record_of()
    marks = {REPLAY_LETTER: b"letter", REPLAY_COUNT: b"2", REPLAY_GROUP: b"housekeeper"}
    record = Record("tb_housekeeper", 0, 0, 1_000, b"device", {**record.headers, **marks}, b"task")
    context = OpenDelivery(Workplace("Housekeeper", {}, RealComposer(Directory(), "here")), record, 1)
    reprocessed(failing, POLICY, ManualClock())(record, context)
    [(_, message)] = context.close()
    told = {name: value for name, value in message.headers.items() if name.startswith(REPLAY_PREFIX)}
    assert told == {REPLAY_LETTER: b"letter", REPLAY_COUNT: b"2"}


def test_it_is_not_handled_before_its_time() -> None:
    record, clock = record_of(History(1, 3_500)), ManualClock(now_ms=1_000)
    context = delivery(record)
    reprocessed(failing, POLICY, clock)(record, context)
    assert context.postponed_s == 2.5
    assert context.close() == ()


def test_a_due_time_that_nobody_would_set_holds_up_the_queue_for_no_longer_than_the_delay() -> None:
    record, clock = record_of(History(1, 10**17)), ManualClock(now_ms=1_000)
    context = delivery(record)
    reprocessed(failing, POLICY, clock)(record, context)
    assert context.postponed_s == 3.0
    clock.advance(3.0)
    context = delivery(record)
    reprocessed(failing, POLICY, clock)(record, context)
    assert context.postponed_s is None


def test_what_succeeds_is_done() -> None:
    record = record_of(History(3, 0, ("ValueError: once",)))
    context, handled = delivery(record), []
    reprocessed(lambda record, context: handled.append(record), POLICY, ManualClock())(record, context)
    assert handled == [record]
    assert context.postponed_s is None
    assert context.close() == ()


def test_a_task_is_executed_eleven_times_and_then_becomes_a_dead_letter_with_its_history() -> None:
    clock, executions = ManualClock(), []
    record = record_of()

    def handle(record, context) -> None:
        executions.append(record)
        raise ValueError(f"no {len(executions) % 2}")

    for _ in range(10):
        context = delivery(record)
        reprocessed(handle, POLICY, clock)(record, context)
        [(_, message)] = context.close()
        record = Record("tb_housekeeper.reprocessing", 0, 0, 0, message.key, message.headers, message.data)
        clock.advance(3)
    with pytest.raises(GivenUp, match="failed 11 times; the last time: ValueError: no 1"):
        reprocessed(handle, POLICY, clock)(record, delivery(record))
    assert len(executions) == 11
    assert History.of(record.headers).errors == ("ValueError: no 1", "ValueError: no 0")


@pytest.mark.parametrize("hopeless", [GivenUp("no such device"), UndecodableMessage("no task")])
def test_what_no_further_try_would_help_is_given_up_at_once(hopeless) -> None:
    def handle(record, context) -> None:
        raise hopeless

    record = record_of()
    with pytest.raises(type(hopeless)):
        reprocessed(handle, POLICY, ManualClock())(record, delivery(record))


def test_a_handler_that_is_awaited_stays_one() -> None:
    async def handle(record, context) -> None:
        failing(record, context)

    record, clock = record_of(), ManualClock()
    context = delivery(record)
    handler = reprocessed(handle, POLICY, clock)
    assert is_async(handler)
    asyncio.run(handler(record, context))
    [(_, message)] = context.close()
    assert History.of(message.headers).attempt == 1


def test_errors_are_bounded_in_number_and_length_and_told_once() -> None:
    policy = ReprocessingPolicy(max_errors=2, max_error_characters=12, max_attempts=100)
    history = History()
    for text in ("one", "two", "two", "three" * 1_000):
        history = policy.after_failure(history, OSError(text), 0)
    assert history.errors == ("OSError: two", "OSError: thr")


@given(some.dictionaries(some.sampled_from([ATTEMPT, DUE_AT_MS, ERRORS]), some.binary(max_size=40)))
def test_whatever_the_headers_hold_can_be_read(headers: dict[str, bytes]) -> None:
    history = History.of(headers)
    assert history.attempt >= 0
    assert all(isinstance(error, str) for error in history.errors)


@pytest.mark.parametrize("raw", [b"{}", b"[[1]]", b"null", b"1", b"[" * 100_000])
def test_what_is_no_list_of_texts_is_no_history(raw) -> None:
    assert History.of({ERRORS: raw}).errors == ()


@given(some.builds(History, some.integers(0, 10**17), some.integers(0, 10**17), some.lists(some.text()).map(tuple)))
def test_a_history_survives_its_headers(history: History) -> None:
    assert json.loads(history.headers()[ERRORS]) == list(history.errors)
    assert History.of(history.headers()) == history


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="delay_ms is -1"):
        ReprocessingPolicy(delay_ms=-1)


class TestQueues:
    """Both queues with one handler, as a housekeeper has them."""

    POLICY = ReprocessingPolicy("housekeeper.again", delay_ms=20, max_attempts=2)

    @pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
    def test_a_failing_task_is_tried_again_elsewhere_and_ends_as_a_dead_letter(
        self, queues: Queues, delivery: str
    ) -> None:
        handled: list[str] = []

        def handle(record: Record, context: DeliveryContext) -> None:
            handled.append(record.data.decode())
            if record.data == b"bad":
                raise ValueError("there is no such device")

        with self.consuming(queues, reprocessed(handle, self.POLICY), delivery):
            for task in (b"bad", b"good"):
                queues.publish("housekeeper", "device", task).result(DEADLINE_S)
            wait_until(lambda: "good" in handled)
            [letter] = wait_until(lambda: list(queues.dead_letters("housekeeper.again")))
        assert Counter(handled) == {"bad": 3, "good": 1}
        assert letter.message.data == b"bad"
        history = History.of(letter.message.headers)
        assert (history.attempt, history.errors) == (2, ("ValueError: there is no such device",))
        assert letter.story.exception_class.endswith("GivenUp")
        assert list(queues.dead_letters("housekeeper")) == []

    def test_a_task_that_fails_once_is_done_the_second_time(self, queues: Queues) -> None:
        attempts: list[int] = []

        def handle(record: Record, context: DeliveryContext) -> None:
            attempts.append(History.of(record.headers).attempt)
            if len(attempts) < 2:
                raise ValueError("not now")

        with self.consuming(queues, reprocessed(handle, self.POLICY), "at_least_once"):
            queues.publish("housekeeper", "device", b"task").result(DEADLINE_S)
            wait_until(lambda: attempts == [0, 1])

    @contextmanager
    def consuming(self, queues: Queues, handler: MessageHandler, delivery: str) -> Iterator[None]:
        for queue in ("housekeeper", "housekeeper.again"):
            queues.create(queue)
        with ExitStack() as stack:
            for queue in ("housekeeper", "housekeeper.again"):
                stack.enter_context(queues.subscribe(queue, handler, group="g", delivery=delivery))
            yield
