"""One message in the hands of its handler."""

import asyncio
import functools
from typing import Any

import pytest

from queuecore.consuming.attempt import Run
from queuecore.consuming.context import DeliveryContext, OpenDelivery
from queuecore.consuming.delivering import is_async
from queuecore.consuming.work import Outcome, Work
from queuecore.deadletter.replay import REPLAY_GROUP
from queuecore.errors import QueueError
from queuecore.messages import REPLAY_LETTER, QueueMessage, Record
from queuecore.sending import Addressed
from queuecore.testing.clock import ManualClock
from tests.unit.queuecore.consuming_kit import GROUP, INFO, a_record, an_attempt, deliverer, worked_on, works


def plain(record: Record, context: DeliveryContext) -> None: ...


async def later(record: Record, context: DeliveryContext) -> None: ...


class Plain:
    func = later

    def __call__(self, record: Record, context: DeliveryContext) -> None: ...


class Later:
    async def __call__(self, record: Record, context: DeliveryContext) -> None: ...

    async def method(self, record: Record, context: DeliveryContext) -> None: ...


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (plain, False),
        (Plain(), False),
        (print, False),
        (functools.partial(plain), False),
        (later, True),
        (Later(), True),
        (Later().method, True),
        (functools.partial(later), True),
        (functools.partial(functools.partial(later)), True),
        (functools.partial(Later()), True),
    ],
)
def test_it_is_known_which_handlers_are_awaited(handler: Any, expected: bool) -> None:
    assert is_async(handler) is expected


def replay_for(group: str) -> Work:
    record = Record(INFO.full_topic_name, 0, 0, 0, None, {REPLAY_GROUP: group.encode(), REPLAY_LETTER: b"7"}, b"x")
    return Work(record, None)


@pytest.mark.parametrize("awaited", [False, True])
class TestReplays:
    def deliver(self, work: Work, awaited: bool) -> list[str | None]:
        seen: list[str | None] = []

        def handle(record: Record, context: DeliveryContext) -> None:
            seen.append(context.replayed_letter)

        attempt = an_attempt([work])
        if awaited:

            async def handle_later(record: Record, context: DeliveryContext) -> None:
                handle(record, context)

            asyncio.run(deliverer(handle_later).work_on_async(attempt, Run()))
        else:
            worked_on(attempt, handle)
        assert attempt.is_over
        return seen

    def test_those_for_another_group_are_passed_over(self, awaited: bool) -> None:
        work = replay_for("another")
        assert self.deliver(work, awaited) == []
        assert (work.outcome, work.deliveries) == (Outcome.PASSED_OVER, 0)

    def test_those_for_this_one_are_not(self, awaited: bool) -> None:
        work = replay_for(GROUP)
        assert self.deliver(work, awaited) == ["7"]
        assert work.outcome is Outcome.SUCCEEDED


class TestPromises:
    def test_a_plain_handler_that_returns_one_has_failed(self) -> None:
        [work] = lane = works(0)
        worked_on(an_attempt(lane), lambda record, context: later(record, context))
        assert work.outcome is Outcome.FAILED
        assert str(work.error) == "the handler returned a coroutine, which nobody awaits; make it an `async def`"

    def test_what_else_it_returns_is_nobodys_business(self) -> None:
        [work] = lane = works(0)
        worked_on(an_attempt(lane), lambda record, context: 7)
        assert work.outcome is Outcome.SUCCEEDED


class Composed:
    """Addresses everything to one partition."""

    def compose(self, queue: str, entity: object, payload: Any, headers: Any = None) -> Addressed:
        return Addressed(INFO, QueueMessage(None, payload))


class TestTheContext:
    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def context(self, clock: ManualClock) -> OpenDelivery:
        workplace = deliverer(plain, clock, timeout_s=10.0, composer=Composed()).workplace
        return OpenDelivery(workplace, a_record(0), 2, clock.monotonic())

    def test_the_time_runs_out(self, context: OpenDelivery, clock: ManualClock) -> None:
        clock.advance(4.0)
        assert (context.deadline, context.remaining_s) == (10.0, 6.0)
        clock.advance(40.0)
        assert context.remaining_s == 0.0

    def test_what_is_sent_is_kept_until_it_is_over(self, context: OpenDelivery) -> None:
        context.send("out", None, b"1")
        context.unsend()
        context.send("out", None, b"2")
        assert [message.data for _, message in context.close()] == [b"2"]

    @pytest.mark.parametrize("act", ["send", "postpone", "unsend"])
    def test_when_it_is_over_nothing_can_be_done(self, context: OpenDelivery, act: str) -> None:
        context.close()
        arguments = {"send": ("out", None, b"x"), "postpone": (1.0,), "unsend": ()}[act]
        with pytest.raises(QueueError, match="handler has returned"):
            getattr(context, act)(*arguments)

    @pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
    def test_it_is_postponed_by_a_number_of_seconds(self, context: OpenDelivery, seconds: float) -> None:
        with pytest.raises(QueueError, match="name a number of seconds"):
            context.postpone(seconds)

    def test_it_can_be_cancelled(self, context: OpenDelivery) -> None:
        assert not context.cancelled
        context.cancel()
        assert context.cancelled

    def test_it_is_shown_by_what_it_is_of(self, context: OpenDelivery) -> None:
        assert repr(context) == "OpenDelivery('in', partition=0, attempt=2)"
