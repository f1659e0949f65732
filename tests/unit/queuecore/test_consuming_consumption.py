"""The life of a consumption, on the real log provider: what is stored before what, and what ends it."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.observing import Unobserved
from queuecore.consuming.work import Work
from queuecore.deadletter.envelope import original_headers, read_story
from queuecore.deadletter.reading import load_payload
from queuecore.errors import QueueError, UnknownTopic
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.unit.queuecore.consuming_kit import AT_ONCE, GROUP, INFO, LONG_PAUSE, NO_RETRY, SEQUENTIAL, Bench, Gate

Handle = Callable[[Record, DeliveryContext], None]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with closing(LogProvider(tmp_path, ProducerOptions(acks="1"))) as provider, closing(Bench(provider)) as bench:
        yield bench


@dataclass
class Noted(Unobserved):
    """What was told before each commit, and how things were then."""

    bench: Bench
    told: list[str] = field(default_factory=list)
    letters: list[int] = field(default_factory=list)
    committed: list[int | None] = field(default_factory=list)
    refuse: str = ""

    def settling(self, works: Sequence[Work]) -> None:
        data = [work.record.data.decode() for work in works]
        if self.refuse in data:
            raise ConnectionError("the database is away")
        self.told += data
        self.letters.append(len(self.bench.letters()))
        self.committed.append(self.bench.committed())


@dataclass
class Desk:
    """A handler that notes what it gets, and does as it is told."""

    act: Handle = lambda record, context: None
    seen: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        self.seen.append((record.data.decode(), context.attempt))
        self.act(record, context)


def failing(*data: str, until: int = 99) -> Handle:
    def act(record: Record, context: DeliveryContext) -> None:
        if record.data.decode() in data and context.attempt < until:
            raise ValueError(f"cannot take {record.data.decode()}")

    return act


class TestHandling:
    def test_messages_are_handled_in_order_and_committed(self, bench: Bench) -> None:
        desk = Desk()
        bench.send("a", "b", "c")
        bench.consume(desk, submit=SEQUENTIAL)
        bench.wait_for_commit(3)
        assert desk.seen == [("a", 1), ("b", 1), ("c", 1)]
        assert bench.letters() == []

    def test_the_handler_knows_queue_tenant_and_attempt(self, bench: Bench) -> None:
        contexts: list[DeliveryContext] = []
        bench.send("a", tenant="t")
        bench.consume(lambda record, context: contexts.append(context))
        wait_until(lambda: contexts)
        [context] = contexts
        assert (context.queue, context.partition, context.attempt, context.tenant_id) == ("in", 0, 1, "t")
        assert (context.replayed_letter, context.record.data, context.cancelled) == (None, b"a", False)
        with pytest.raises(QueueError, match="keeps no state; give it a state topic"):
            _ = context.state

    def test_one_without_a_composer_cannot_send(self, bench: Bench) -> None:
        bench.send("a")
        bench.consume(lambda record, context: context.send("out", None, b"x"), processing=NO_RETRY)
        bench.wait_for_commit(1)
        assert bench.stories()["a"].exception_message == (
            "this handler cannot send to 'out': its consumption was given no composer"
        )

    def test_a_message_that_fails_is_tried_again_before_the_next(self, bench: Bench) -> None:
        desk = Desk(failing("b", until=3))
        bench.send("a", "b", "c")
        bench.consume(desk, submit=SEQUENTIAL, processing=AT_ONCE)
        bench.wait_for_commit(3)
        assert desk.seen == [("a", 1), ("b", 1), ("b", 2), ("b", 3), ("c", 1)]
        assert bench.letters() == []


class TestGivingUp:
    def test_a_letter_is_there_before_its_message_is_committed(self, bench: Bench) -> None:
        desk, noted = Desk(failing("bad")), Noted(bench)
        bench.send("bad", "good")
        bench.consume(desk, observer=noted, submit=SEQUENTIAL, processing=AT_ONCE)
        bench.wait_for_commit(2)
        assert desk.seen == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
        assert sorted(noted.told) == ["bad", "good"]
        assert (noted.letters[0], noted.committed[0]) == (1, None)

    def test_a_letter_tells_where_it_came_from_and_why(self, bench: Bench) -> None:
        bench.send("bad", key="k", tenant="t")
        bench.consume(Desk(failing("bad")), processing=AT_ONCE, queue_id="7", service_id="worker-1")
        bench.wait_for_commit(1)
        [letter] = bench.letters()
        assert (letter.partition, letter.key, letter.data) == (0, b"k", b"bad")
        assert original_headers(letter.headers) == {"tenantId": b"t"}
        story = read_story(letter.headers)
        assert (story.topic, story.partition, story.offset) == ("in.0", 0, 0)
        assert (story.queue_id, story.group, story.handler) == ("7", GROUP, "handler")
        assert (story.service_id, story.tenant_id) == ("worker-1", "t")
        assert (story.exception_class, story.exception_message) == ("ValueError", "cannot take bad")
        assert "in act\n" in story.stack_trace
        assert (story.reason, story.attempts) == ("retries_exhausted", 3)
        assert [(one.number, one.outcome, one.fault, one.message) for one in story.failures] == [
            (number, "failed", "ValueError", "cannot take bad") for number in (1, 2, 3)
        ]
        assert story.failures[-1].failed_at_ms <= story.failed_at_ms
        assert 0 < story.first_failed_at_ms <= story.failed_at_ms

    def test_nothing_is_committed_when_the_letter_cannot_be_written(self, bench: Bench) -> None:
        admin = bench.provider.admin()
        admin.delete_topics(["in.dlq"])
        bench.send("bad")
        ended = bench.consume(Desk(failing("bad")), processing=NO_RETRY)
        assert ended.ended.wait(DEADLINE_S)
        assert isinstance(ended.error, UnknownTopic)
        assert bench.committed() is None
        admin.create_topics([TopicSpec("in.dlq")])
        bench.consume(Desk(failing("bad")), processing=NO_RETRY)
        bench.wait_for_commit(1)
        assert list(bench.stories()) == ["bad"]

    def test_a_letter_that_is_too_large_has_its_payload_apart(self, bench: Bench) -> None:
        data = b"x" * (ProducerOptions().max_request_size - 200)
        send_and_wait(bench.provider.producer(), INFO, QueueMessage(b"k", data), DEADLINE_S)
        bench.consume(Desk(failing(data.decode())), processing=NO_RETRY)
        bench.wait_for_commit(1)
        [letter] = bench.letters()
        assert (letter.key, letter.data) == (b"k", b"")
        with closing(bench.provider.reader()) as reader:
            assert load_payload(reader, letter) == data

    @pytest.mark.parametrize(
        "error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, pytest.fail.Exception]
    )
    def test_a_handler_that_asks_for_the_end_of_its_thread_or_process_has_failed(
        self, bench: Bench, error: type[BaseException]
    ) -> None:
        def leave(record: Record, context: DeliveryContext) -> None:
            if record.data == b"bad":
                raise error("bye")

        bench.send("bad", "good")
        consumption = bench.consume(Desk(leave), submit=SEQUENTIAL, processing=NO_RETRY)
        bench.wait_for_commit(2)
        assert bench.stories()["bad"].exception_class.endswith(error.__name__)
        assert consumption.is_running


class TestOutcomes:
    def test_one_that_cannot_be_noted_is_not_committed(self, bench: Bench) -> None:
        bench.send("a")
        refused = bench.consume(Desk(), observer=Noted(bench, refuse="a"))
        assert refused.ended.wait(DEADLINE_S)
        assert isinstance(refused.error, ConnectionError)
        assert bench.committed() is None
        desk = Desk()
        bench.consume(desk)
        bench.wait_for_commit(1)
        assert desk.seen == [("a", 1)]

    def test_what_was_settled_before_an_error_is_not_repeated(self, bench: Bench) -> None:
        bench.send("a", "b")
        refused = bench.consume(Desk(), observer=Noted(bench, refuse="c"))
        bench.wait_for_commit(2)
        bench.send("c")
        assert refused.ended.wait(DEADLINE_S)
        assert bench.committed() == 2

    def test_what_is_done_is_committed_while_a_handler_is_still_at_work(self, bench: Bench) -> None:
        gate = Gate("slow")
        bench.send("a", "b", "slow")
        bench.consume(gate)
        bench.wait_for_commit(2)
        gate.open()
        bench.wait_for_commit(3)


class TestStopping:
    def test_what_is_done_is_committed_and_the_rest_comes_again(self, bench: Bench) -> None:
        gate, desk = Gate("b"), Desk()
        bench.send("a", "b", "c", "d")
        consumption = bench.consume(gate, submit=SEQUENTIAL)
        wait_until(lambda: gate.seen == ["a", "b"])
        stopped: list[bool] = []
        stopper = threading.Thread(target=lambda: stopped.append(consumption.stop(DEADLINE_S)))
        stopper.start()
        wait_until(lambda: consumption._stopping.is_set())
        gate.open()
        stopper.join(DEADLINE_S)
        assert (stopped, bench.committed()) == ([True], 2)
        bench.consume(desk, submit=SEQUENTIAL)
        bench.wait_for_commit(4)
        assert desk.seen == [("c", 1), ("d", 1)]

    def test_between_attempts_the_message_is_left_to_the_next(self, bench: Bench) -> None:
        failed, desk = Desk(failing("b")), Desk()
        bench.send("a", "b")
        consumption = bench.consume(failed, submit=SEQUENTIAL, processing=LONG_PAUSE)
        wait_until(lambda: consumption.counts.tmp_failed)
        assert consumption.stop(DEADLINE_S)
        assert (bench.committed(), bench.letters()) == (1, [])
        bench.consume(desk, submit=SEQUENTIAL)
        bench.wait_for_commit(2)
        assert desk.seen == [("b", 1)]

    def test_a_handler_may_stop_it_and_gets_nothing_more(self, bench: Bench) -> None:
        def enough(record: Record, context: DeliveryContext) -> None:
            if record.data == b"b":
                assert consumption.stop(DEADLINE_S)

        desk = Desk(enough)
        bench.send("a", "b", "c")
        consumption = bench.consumption(desk, submit=SEQUENTIAL)
        consumption.start()
        assert consumption.ended.wait(DEADLINE_S)
        assert (desk.seen, bench.committed()) == ([("a", 1), ("b", 1)], 2)

    def test_its_partition_is_free_at_once(self, bench: Bench) -> None:
        bench.send("a")
        consumption = bench.consume(Desk(), member_id="the-only")
        bench.wait_for_commit(1)
        assert consumption.stop(DEADLINE_S)
        assert (consumption.partitions, consumption.is_running) == (frozenset(), False)
        bench.send("b")
        other = bench.provider.consumer(GROUP)
        other.subscribe([INFO])
        assert [record.data for record in other.poll(0)] == [b"b"]
        other.stop()

    def test_its_threads_end(self, bench: Bench) -> None:
        bench.send("a", "b")
        consumption = bench.consume(Desk())
        bench.wait_for_commit(2)
        assert consumption.stop(DEADLINE_S)
        wait_until(lambda: not [one for one in threading.enumerate() if one.name.startswith("in-g-")])

    def test_it_does_not_wait_for_a_poll_however_long(self, bench: Bench) -> None:
        consumption = bench.consume(Gate(), poll_interval_ms=3_600_000)
        wait_until(lambda: consumption.partitions)
        assert consumption.stop(DEADLINE_S)

    def test_one_that_never_started_has_nothing_to_stop(self, bench: Bench) -> None:
        async def later(record: Record, context: DeliveryContext) -> None: ...

        for handler in (Desk(), later):
            consumption = bench.consumption(handler)
            assert consumption.stop(0.0)
            assert not consumption.is_running


class TestTheGroup:
    @pytest.mark.parametrize("room", [1, 100], ids=["without room for more", "with room for more"])
    def test_it_hears_of_a_member_whose_handler_takes_long(self, tmp_path: Path, room: int) -> None:
        hasty = ConsumerOptions(session_timeout_ms=400)
        with closing(LogProvider(tmp_path, consuming=hasty)) as provider, closing(Bench(provider)) as bench:
            gate, rival = Gate("a"), provider.consumer(GROUP)
            bench.send(*"abcdefgh")
            bench.consume(gate, submit=SEQUENTIAL, pack_size=room, max_open=room, hand_over_s=0.2)
            wait_until(lambda: gate.seen)
            rival.subscribe([INFO])
            patience_is_over = time.monotonic() + 3 * 0.4
            wait_until(lambda: rival.poll(10) or time.monotonic() > patience_is_over)
            assert rival.partitions == frozenset()
            gate.open()
            bench.wait_for_commit(8)
            rival.stop()
            assert gate.seen == list("abcdefgh")
