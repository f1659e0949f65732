"""What tests of consuming share: records, plans, and a queue with a consumption to be watched."""

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.attempt import Attempt, Run
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import Composer, DeliveryContext, NoComposer, Workplace
from queuecore.consuming.delivering import Deliverer
from queuecore.consuming.marks import MarkStore
from queuecore.consuming.observing import Observer
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.work import Work
from queuecore.deadletter.envelope import FailureStory, read_story
from queuecore.messages import TENANT_ID, QueueMessage, Record
from queuecore.metrics.recorder import Recording
from queuecore.processing import processing_strategy
from queuecore.providers.base import Provider, TopicSpec
from queuecore.sending import send_and_wait
from queuecore.submit import submit_strategy
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo, dead_letter_partition

INFO = TopicPartitionInfo("in", 0)
GROUP = "g"
NO_RETRY = processing_strategy("SKIP_ALL_FAILURES")
AT_ONCE = processing_strategy("RETRY_FAILED", retries=2, pause_ms=0)
LONG_PAUSE = processing_strategy("RETRY_FAILED", pause_ms=3_600_000, max_pause_ms=3_600_000)
SEQUENTIAL = submit_strategy("SEQUENTIAL")
BY_ORIGINATOR = submit_strategy("SEQUENTIAL_BY_ORIGINATOR")


def a_record(offset: int, *, key: bytes | None = None, tenant: str = "", data: bytes = b"x") -> Record:
    headers = {TENANT_ID: tenant.encode()} if tenant else {}
    return Record(INFO.full_topic_name, 0, offset, 0, key, headers, data)


def a_plan(*infos: TopicPartitionInfo, **changes: Any) -> ConsumptionPlan:
    return ConsumptionPlan("in", GROUP, infos or (INFO,), "handler", **changes)


def works(*offsets: int, lane: str | None = None) -> list[Work]:
    return [Work(a_record(offset), lane) for offset in offsets]


def deliverer(
    handler: Callable[..., Any],
    clock: Clock | None = None,
    timeout_s: float | None = None,
    composer: Composer | None = None,
) -> Deliverer:
    options = {} if clock is None else {"clock": clock}
    workplace = Workplace("in", {INFO.place: INFO}, composer or NoComposer(), timeout_s, **options)
    return Deliverer(handler, workplace, GROUP)


def an_attempt(*lanes: list[Work], processing: str = "SKIP_ALL_FAILURES", **options: Any) -> Attempt:
    return Attempt([lanes], processing_strategy(processing), lambda: None, **options)


def worked_on(attempt: Attempt, handler: Callable[..., Any]) -> Run:
    """One run that has done what there was to do, in this thread."""
    run = Run()
    attempt.join(run, SYSTEM_CLOCK.monotonic())
    deliverer(handler).work_on(attempt, run)
    return run


class Gate:
    """A handler that waits with some messages until it is opened, and notes what it was given."""

    def __init__(self, *held: str) -> None:
        self._held = held
        self._open = threading.Event()
        self.seen: list[str] = []
        self.contexts: list[DeliveryContext] = []
        self.returned: list[str] = []

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        data = record.data.decode()
        self.contexts.append(context)
        self.seen.append(data)
        if data in self._held:
            assert self._open.wait(DEADLINE_S)
        self.returned.append(data)

    def open(self) -> None:
        self._open.set()


class Bench:
    """A queue, `in`, and what consumes it until the end of the test."""

    def __init__(self, provider: Provider, partitions: int = 1) -> None:
        self.provider = provider
        self.infos = tuple(TopicPartitionInfo("in", number) for number in range(partitions))
        topics = [TopicSpec(info.full_topic_name) for info in self.infos]
        provider.admin().create_topics([*topics, TopicSpec("in.dlq", partitions=partitions)])
        self._stack = ExitStack()
        self._producer = provider.producer()

    def send(self, *data: str, partition: int = 0, key: str | None = None, tenant: str = "") -> None:
        headers = {TENANT_ID: tenant.encode()} if tenant else {}
        for one in data:
            message = QueueMessage(None if key is None else key.encode(), one.encode(), headers)
            send_and_wait(self._producer, self.infos[partition], message, DEADLINE_S)

    def plan(self, **changes: Any) -> ConsumptionPlan:
        return a_plan(*self.infos, **{"poll_interval_ms": 10, "hand_over_s": 1.0, **changes})

    def consumption(
        self,
        handler: Callable[..., Any],
        *,
        observer: Observer | None = None,
        marks: MarkStore | None = None,
        composer: Composer | None = None,
        recording: Recording | None = None,
        **changes: Any,
    ) -> Consumption:
        """Abandoned at the end, if it has not ended before."""
        made = Consumption(
            self.plan(**changes),
            self.provider,
            handler,
            composer=composer,
            observer=observer,
            marks=marks,
            recording=recording,
        )
        self._stack.callback(self._end, made)
        return made

    def consume(self, handler: Callable[..., Any], **options: Any) -> Consumption:
        made = self.consumption(handler, **options)
        made.start()
        return made

    def committed(self, partition: int = 0) -> int | None:
        place = self.infos[partition].place
        return self.provider.admin().committed_offsets({GROUP: [place]})[GROUP].get(place)

    def wait_for_commit(self, offset: int, partition: int = 0) -> None:
        wait_until(lambda: self.committed(partition) == offset)

    def letters(self, partition: int = 0) -> list[Record]:
        with closing(self.provider.reader()) as reader:
            return reader.read(dead_letter_partition(self.infos[partition]).place, 0, 1_000)

    def stories(self, partition: int = 0) -> dict[str, FailureStory]:
        """Those of the letters, by what the messages say."""
        return {one.data.decode(): read_story(one.headers) for one in self.letters(partition)}

    def close(self) -> None:
        self._stack.close()

    @staticmethod
    def _end(consumption: Consumption) -> None:
        if consumption.is_running:
            consumption.abandon()
            assert consumption.ended.wait(DEADLINE_S)
