"""The life of one partition, on the real log provider. A handler stops its loop, so that `run` returns."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from queuecore.consuming.loop import ConsumedPartition, Handler, HandlerContext, PartitionLoop
from queuecore.deadletter.envelope import FailureStory, original_headers, read_story
from queuecore.deadletter.reading import load_payload
from queuecore.errors import Displaced, NotOwner, QueueError, UnknownTopic
from queuecore.messages import QueueMessage, Record
from queuecore.processing.retry import RetryFailed
from queuecore.providers.base import GroupDescription, QueueConsumer, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.admin import LogAdmin
from queuecore.providers.log.consumer import LogConsumer
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.sending import send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ServiceType, TopicPartitionInfo, dead_letter_partition

INFO = TopicPartitionInfo("tb_rule_engine", 3)
PLACE = INFO.place
LETTERS = dead_letter_partition(INFO).place
SPEC = ConsumedPartition(
    queue_id="7",
    queue="Main",
    service_type=ServiceType.TB_RULE_ENGINE,
    info=INFO,
    handler="test",
    poll_interval_ms=25,
    retry=RetryFailed(retries=2, pause_ms=0),
)


@dataclass
class Desk:
    """A queue with a handler that can be told what to do, and notes on all that happened."""

    provider: LogProvider
    handle: Callable[["Desk", Record, HandlerContext], None] = lambda desk, record, context: None
    after_outcome: Callable[["Desk", Record], None] = lambda desk, record: None
    handled: list[tuple[str, int]] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    stories: list[FailureStory] = field(default_factory=list)
    stop: Callable[[], None] = lambda: None
    clock: ManualClock = field(default_factory=lambda: ManualClock(now_ms=5_000))

    def send(self, *data: str) -> None:
        for one in data:
            message = QueueMessage(one.encode(), one.encode(), {"tenantId": b"t"})
            send_and_wait(self.provider.producer(), INFO, message, DEADLINE_S)

    def run(self, until: int) -> None:
        """Consume in this thread until that many outcomes are known or something raises."""
        loop = PartitionLoop(SPEC, self.provider, self._handler(), self, self.clock)
        self.stop = loop.stop
        self._until = len(self.outcomes) + until
        loop.run()

    def succeeded(self, record: Record) -> None:
        self._note("done", record)

    def dead_lettered(self, record: Record, story: FailureStory) -> None:
        self.stories.append(story)
        self._note("letter", record)

    def committed(self) -> int | None:
        return self.provider.admin().committed_offsets({SPEC.group: [PLACE]})[SPEC.group].get(PLACE)

    def letters(self) -> list[Record]:
        with closing(self.provider.reader()) as reader:
            return reader.read(LETTERS, 0, 100)

    def _handler(self) -> Handler:
        def handle(record: Record, context: HandlerContext) -> None:
            self.handled.append((record.data.decode(), context.attempt))
            self.handle(self, record, context)

        return handle

    def _note(self, outcome: str, record: Record) -> None:
        self.after_outcome(self, record)
        self.outcomes.append(f"{outcome} {record.data.decode()}")
        if len(self.outcomes) >= self._until:
            self.stop()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with closing(LogProvider(tmp_path, ProducerOptions(acks="1"))) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic), TopicSpec(LETTERS.topic, partitions=4)])
        yield Desk(provider)


def fail_while(condition: Callable[[Record, HandlerContext], bool]) -> Callable[[Desk, Record, HandlerContext], None]:
    def handle(desk: Desk, record: Record, context: HandlerContext) -> None:
        if condition(record, context):
            raise ValueError(f"cannot take {record.data.decode()}")

    return handle


def test_messages_are_handled_in_order_and_committed(desk: Desk) -> None:
    desk.send("a", "b", "c")
    desk.run(until=3)
    assert desk.handled == [("a", 1), ("b", 1), ("c", 1)]
    assert desk.outcomes == ["done a", "done b", "done c"]
    assert (desk.committed(), desk.letters()) == (3, [])


def test_the_handler_knows_queue_tenant_and_attempt(desk: Desk) -> None:
    contexts: list[HandlerContext] = []
    desk.handle = lambda desk, record, context: contexts.append(context)
    desk.send("a")
    desk.run(until=1)
    assert contexts == [HandlerContext(queue="Main", attempt=1, tenant_id="t", replayed_letter=None)]


def test_a_message_that_fails_is_tried_again_before_the_next(desk: Desk) -> None:
    desk.handle = fail_while(lambda record, context: record.data == b"b" and context.attempt < 3)
    desk.send("a", "b", "c")
    desk.run(until=3)
    assert desk.handled == [("a", 1), ("b", 1), ("b", 2), ("b", 3), ("c", 1)]
    assert desk.outcomes == ["done a", "done b", "done c"]
    assert (desk.committed(), desk.letters()) == (3, [])


def test_a_message_that_keeps_failing_becomes_a_letter_before_its_commit(desk: Desk) -> None:
    seen: list[tuple[int, int | None]] = []
    desk.handle = fail_while(lambda record, context: record.data == b"bad")
    desk.after_outcome = lambda desk, record: seen.append((len(desk.letters()), desk.committed()))
    desk.send("bad", "good")
    desk.run(until=2)
    assert desk.handled == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
    assert desk.outcomes == ["letter bad", "done good"]
    assert seen == [(1, None), (1, 1)], "a letter is committed before the next message is touched"
    assert desk.committed() == 2


def test_a_letter_tells_where_it_came_from_and_why(desk: Desk) -> None:
    desk.handle = fail_while(lambda record, context: True)
    desk.send("bad")
    desk.run(until=1)
    [letter] = desk.letters()
    assert (letter.partition, letter.key, letter.data) == (3, b"bad", b"bad")
    assert original_headers(letter.headers) == {"tenantId": b"t"}
    story = read_story(letter.headers)
    assert desk.stories == [story]
    assert (story.topic, story.partition, story.offset) == ("tb_rule_engine.3", 0, 0)
    assert (story.queue_id, story.group, story.handler) == ("7", "tb_rule_engine_main-consumer-3", "test")
    assert (story.exception_class, story.exception_message) == ("ValueError", "cannot take bad")
    assert "in handle\n" in story.stack_trace
    assert (story.reason, story.attempts) == ("retries_exhausted", 3)
    assert (story.first_failed_at_ms, story.failed_at_ms) == (5_000, 5_000)


def test_nothing_is_committed_when_the_letter_cannot_be_written(tmp_path: Path) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        desk = Desk(provider, fail_while(lambda record, context: True))
        desk.send("bad")
        with pytest.raises(UnknownTopic):
            desk.run(until=1)
        assert (desk.committed(), desk.outcomes) == (None, [])
        provider.admin().create_topics([TopicSpec(LETTERS.topic, partitions=4)])
        desk.run(until=1)
        assert (desk.committed(), desk.outcomes) == (1, ["letter bad"])


def test_stopping_in_a_pack_commits_what_is_done_and_the_rest_comes_again(desk: Desk) -> None:
    desk.send("a", "b", "c", "d", "e")
    desk.run(until=2)
    assert (desk.handled, desk.committed()) == ([("a", 1), ("b", 1)], 2)
    desk.run(until=3)
    assert desk.handled[2:] == [("c", 1), ("d", 1), ("e", 1)]
    assert desk.committed() == 5


def test_stopping_between_attempts_leaves_the_message_to_the_next(desk: Desk) -> None:
    def stop_and_fail(desk: Desk, record: Record, context: HandlerContext) -> None:
        if record.data == b"b":
            desk.stop()
            raise ValueError("not now")

    desk.handle = stop_and_fail
    desk.send("a", "b")
    desk.run(until=2)
    assert (desk.outcomes, desk.committed(), desk.letters()) == (["done a"], 1, [])
    desk.handle = lambda desk, record, context: None
    desk.run(until=1)
    assert desk.handled == [("a", 1), ("b", 1), ("b", 1)]
    assert (desk.outcomes, desk.committed()) == (["done a", "done b"], 2)


def test_an_outcome_that_cannot_be_noted_is_not_committed(desk: Desk) -> None:
    def no_database(desk: Desk, record: Record) -> None:
        raise ConnectionError("the database is away")

    desk.send("a")
    desk.after_outcome = no_database
    with pytest.raises(ConnectionError):
        desk.run(until=1)
    assert desk.committed() is None
    desk.after_outcome = lambda desk, record: None
    desk.run(until=1)
    assert (desk.handled, desk.committed()) == ([("a", 1), ("a", 1)], 1)


def test_a_loop_that_ends_gives_its_partition_free(desk: Desk) -> None:
    desk.send("a")
    desk.run(until=1)
    desk.send("b")
    other = desk.provider.consumer(SPEC.group)
    other.subscribe([INFO])
    assert [record.data for record in other.poll(0)] == [b"b"]
    other.stop()


def test_a_handler_that_asks_for_the_end_of_the_process_has_failed(desk: Desk) -> None:
    def leave(desk: Desk, record: Record, context: HandlerContext) -> None:
        if record.data == b"bad":
            raise SystemExit(3)

    desk.handle = leave
    desk.send("bad", "good")
    desk.run(until=2)
    assert desk.outcomes == ["letter bad", "done good"]
    assert desk.stories[0].exception_class == "SystemExit"


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, pytest.fail.Exception])
def test_so_has_one_that_asks_for_the_end_of_its_thread(desk: Desk, error: type[BaseException]) -> None:
    def leave(desk: Desk, record: Record, context: HandlerContext) -> None:
        if record.data == b"bad":
            raise error("bye")

    desk.handle = leave
    desk.send("bad", "good")
    desk.run(until=2)
    assert desk.outcomes == ["letter bad", "done good"]


def test_an_interrupt_ends_the_loop_only_in_the_main_thread(desk: Desk) -> None:
    def interrupt(desk: Desk, record: Record, context: HandlerContext) -> None:
        raise KeyboardInterrupt

    desk.handle = interrupt
    desk.send("bad")
    with pytest.raises(KeyboardInterrupt):
        desk.run(until=1)
    assert desk.outcomes == []
    worker = threading.Thread(target=desk.run, args=(1,))
    worker.start()
    worker.join(DEADLINE_S)
    assert desk.outcomes == ["letter bad"]


def test_a_letter_that_is_too_large_has_its_payload_apart(desk: Desk) -> None:
    def fail(desk: Desk, record: Record, context: HandlerContext) -> None:
        raise ValueError("no")

    desk.handle = fail
    data = b"x" * (ProducerOptions().max_request_size - 200)
    send_and_wait(desk.provider.producer(), INFO, QueueMessage(b"k", data), DEADLINE_S)
    desk.run(until=1)
    [letter] = desk.letters()
    assert (letter.key, letter.data) == (b"k", b"")
    assert read_story(letter.headers).exception_message == "no"
    with closing(desk.provider.reader()) as reader:
        assert load_payload(reader, letter) == data


def test_what_is_done_before_an_error_is_not_repeated(desk: Desk) -> None:
    def refuse(desk: Desk, record: Record) -> None:
        if record.data == b"c":
            raise OSError("the database is away")

    desk.after_outcome = refuse
    desk.send("a", "b", "c")
    with pytest.raises(OSError, match="away"):
        desk.run(until=3)
    assert desk.committed() == 2


def test_a_long_pack_is_committed_on_the_way_and_its_group_hears_of_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[int | None] = []
    monkeypatch.setattr(LogConsumer, "keep_alive", lambda consumer: words.append(desk.committed()))
    desk.handle = lambda desk, record, context: desk.clock.advance(3)
    desk.send("a", "b", "c", "d")
    desk.run(until=4)
    assert words == [2, 4]


@contextmanager
def running(loop: PartitionLoop) -> Iterator[list[BaseException]]:
    """The loop runs on a thread of its own until the end of the block. Gives what it raised."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            loop.run()
        except QueueError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield failures
    finally:
        loop.stop()
        thread.join(DEADLINE_S)


@contextmanager
def rival_of(desk: Desk, spec: ConsumedPartition) -> Iterator[QueueConsumer]:
    """Another that would take the loop's place."""
    consumer = desk.provider.consumer(spec.group, member_id=spec.member_id)
    try:
        yield consumer
    finally:
        consumer.stop()


def displace_once(other: QueueConsumer, info: TopicPartitionInfo) -> Callable[[Desk, Record, HandlerContext], None]:
    """While the first message is handled `other` takes the place, and gets the message too."""

    def handle(desk: Desk, record: Record, context: HandlerContext) -> None:
        if len(desk.handled) == 1:
            other.subscribe([info])
            wait_until(lambda: other.poll(25))

    return handle


def test_one_that_was_displaced_stands_by_and_is_known_again_afterwards(desk: Desk) -> None:
    desk.send("a", "b")
    other = desk.provider.consumer(SPEC.group, member_id=SPEC.member_id)
    desk.handle = displace_once(other, INFO)
    loop = PartitionLoop(SPEC, desk.provider, desk._handler(), desk, desk.clock)
    desk.stop, desk._until = loop.stop, 100
    with pytest.raises(Displaced):
        loop.run()
    assert desk.committed() is None
    with running(loop) as failures:
        wait_until(lambda: len(desk.provider.admin().groups()[SPEC.group].members) == 2)
        other.poll(25)
        other.commit({PLACE: 1})
        other.stop()
        wait_until(lambda: desk.committed() == 2)
        assert desk.handled[-1] == ("b", 1)
        with rival_of(desk, SPEC) as newcomer:
            newcomer.subscribe([INFO])
            wait_until(lambda: failures)
    assert [type(one) for one in failures] == [Displaced]


def test_one_that_lost_its_partition_otherwise_comes_back_as_itself(tmp_path: Path) -> None:
    hasty = ConsumerOptions(session_timeout_ms=500)
    with closing(LogProvider(tmp_path, consuming=hasty)) as provider:
        provider.admin().create_topics([TopicSpec(PLACE.topic)])
        desk = Desk(provider)
        desk.send("a")
        other = provider.consumer(SPEC.group)
        desk.handle = displace_once(other, INFO)  # without the id, so only when the session is over
        loop = PartitionLoop(SPEC, provider, desk._handler(), desk, desk.clock)
        desk.stop, desk._until = loop.stop, 100
        with pytest.raises(NotOwner) as lost:
            loop.run()
        assert type(lost.value) is NotOwner
        other.stop()
        with running(loop) as failures:
            wait_until(lambda: desk.committed() == 1)
            with rival_of(desk, SPEC) as newcomer:
                newcomer.subscribe([INFO])
                wait_until(lambda: failures)
        assert [type(one) for one in failures] == [Displaced]


@pytest.mark.parametrize("end", ["free", "stopped"])
def test_inside_a_topic_one_that_was_displaced_stays_out_of_the_group(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    info = TopicPartitionInfo("inside", 1, use_internal_partition=True)
    spec, looks, groups = replace(SPEC, info=info), list[int](), LogAdmin.groups

    def look(admin: LogAdmin) -> Mapping[str, GroupDescription]:
        found = groups(admin)
        looks.append(len(found[spec.group].members))
        return found

    monkeypatch.setattr(LogAdmin, "groups", look)
    monkeypatch.setattr("queuecore.consuming.loop._LOOK_EVERY_S", 0.01)
    desk.provider.admin().create_topics([TopicSpec("inside", partitions=2)])
    for data in (b"a", b"b"):
        send_and_wait(desk.provider.producer(), info, QueueMessage(None, data), DEADLINE_S)
    with rival_of(desk, spec) as other:
        desk.handle = displace_once(other, info)
        loop = PartitionLoop(spec, desk.provider, desk._handler(), desk, desk.clock)
        desk.stop, desk._until = loop.stop, 100
        with pytest.raises(Displaced):
            loop.run()
        with running(loop) as failures:
            wait_until(lambda: len(looks) >= 3)
            assert set(looks) == {1}
            if end == "free":
                other.commit({info.place: 1})
                other.unsubscribe()
                wait_until(lambda: desk.handled[-1] == ("b", 1))
        assert failures == []
        if end == "stopped":
            other.commit({info.place: 2})
            assert other.poll(0) == []
