"""The life of one partition: poll, handle, put aside what keeps failing, commit."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol
from uuid import UUID

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.progress import KEEP_ALIVE_EVERY_S, PackProgress
from queuecore.deadletter.envelope import FailureStory, describe_exception, to_letter
from queuecore.deadletter.fitting import send_letter
from queuecore.errors import Displaced
from queuecore.messages import REPLAY_LETTER, TENANT_ID, Record, text_header
from queuecore.processing.retry import RetryFailed
from queuecore.providers.base import Provider, QueueConsumer
from queuecore.topics import ServiceType, TopicPartitionInfo, dead_letter_partition, group_name

logger = logging.getLogger(__name__)

_LETTER_ACK_S = 30
# How often one that was displaced looks whether its place is free, where the provider would not tell.
_LOOK_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class HandlerContext:
    """What a handler may know about the delivery of its message. `attempt` counts from 1."""

    queue: str
    attempt: int
    tenant_id: str | None
    replayed_letter: str | None


class Handler(Protocol):
    def __call__(self, record: Record, context: HandlerContext) -> None:
        """Returning means done; raising means failed. May see a message more than once."""


def context_of(record: Record, queue: str, attempt: int) -> HandlerContext:
    tenant = text_header(record.headers, TENANT_ID)
    return HandlerContext(queue, attempt, tenant, text_header(record.headers, REPLAY_LETTER))


@dataclass(frozen=True, slots=True)
class ConsumedPartition:
    """What a loop needs to know about its queue. Equal ones need no restart."""

    queue_id: str
    queue: str
    service_type: ServiceType
    info: TopicPartitionInfo
    handler: str
    poll_interval_ms: int
    retry: RetryFailed = field(default_factory=RetryFailed)

    @property
    def group(self) -> str:
        tenant: UUID | None = self.info.tenant_id
        return group_name(self.service_type, self.queue, tenant, self.info.partition)

    @property
    def member_id(self) -> str:
        """Of the group's only member: who comes next takes the place of one that hangs."""
        return f"partition-{self.info.partition or 0}"


class Outcome(Enum):
    SUCCEEDED = auto()
    DEAD_LETTERED = auto()


class Outcomes(Protocol):
    """Told of each message before its offset is committed, so what it stores is never behind the commit."""

    def succeeded(self, record: Record) -> None: ...

    def dead_lettered(self, record: Record, story: FailureStory) -> None: ...


class PartitionLoop:
    """At least once, in order. Runs on the thread that calls `run`; `stop` may come from any thread."""

    def __init__(
        self,
        spec: ConsumedPartition,
        provider: Provider,
        handle: Handler,
        outcomes: Outcomes,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.spec = spec
        self._provider = provider
        self._handle = handle
        self._outcomes = outcomes
        self._clock = clock
        self._stopping = threading.Event()
        self._is_displaced = False

    def stop(self) -> None:
        """Finish the message at hand, commit what is done, return from `run`."""
        self._stopping.set()

    def run(self) -> None:
        """Consume until stopped. An error of the provider or of `outcomes` ends it, with what is done committed.

        Another loop for the same partition takes its place, which is Displaced here. Run again, this one first stands
        by until the other is gone: two that both insist would take it from each other for ever."""
        if self._is_displaced:
            self._stand_by()
            if self._stopping.is_set():
                return
            self._is_displaced = False
        try:
            with self._subscribed(self.spec.member_id) as consumer:
                while not self._stopping.is_set():
                    if records := consumer.poll(self.spec.poll_interval_ms):
                        self._process(records, PackProgress(consumer, self.spec.info.place, self._clock))
        except Displaced:
            self._is_displaced = True
            raise

    def _stand_by(self) -> None:
        """Wait until the partition is free or the loop is stopped. An ordinary member of the group is given it when
        the other is gone. Inside a topic that has more partitions Kafka might give it sooner, in return for another
        that nobody reads; so there this one stays out of the group."""
        if self.spec.info.use_internal_partition:
            while self._group_has_members() and not self._stopping.wait(_LOOK_EVERY_S):
                pass
            return
        with self._subscribed(None) as consumer:
            while not self._stopping.is_set() and not consumer.partitions:
                # What it gives is not committed, and comes again.
                consumer.poll(self.spec.poll_interval_ms)

    def _group_has_members(self) -> bool:
        group = self._provider.admin().groups().get(self.spec.group)
        return group is not None and bool(group.members)

    @contextmanager
    def _subscribed(self, member_id: str | None) -> Iterator[QueueConsumer]:
        consumer = self._provider.consumer(self.spec.group, member_id=member_id)
        try:
            consumer.subscribe([self.spec.info])
            yield consumer
        finally:
            # Nobody shall wait for one that has stopped.
            consumer.unsubscribe()
            consumer.stop()

    def _process(self, records: list[Record], progress: PackProgress) -> None:
        try:
            for record in records:
                outcome = self._deliver(record, progress)
                if outcome is None:
                    break
                progress.done(record.offset, commit_now=outcome is Outcome.DEAD_LETTERED)
        except BaseException:
            progress.save()
            raise
        progress.commit()

    def _deliver(self, record: Record, progress: PackProgress) -> Outcome | None:
        """Hand over one message until it succeeds or is given up. None: stopped first, it is not done."""
        state = self.spec.retry.state()
        first_failed_at_ms = 0
        while not self._stopping.is_set():
            error = self._attempt(record, state.failures + 1)
            if error is None:
                self._outcomes.succeeded(record)
                return Outcome.SUCCEEDED
            first_failed_at_ms = first_failed_at_ms or self._clock.now_ms()
            pause_ms = state.pause_before_next_ms()
            if pause_ms is None:
                self._give_up(record, error, state.failures, first_failed_at_ms)
                return Outcome.DEAD_LETTERED
            self._pause(pause_ms / 1000, progress)
        return None

    def _attempt(self, record: Record, attempt: int) -> BaseException | None:
        """What the handler raised, whatever that is: one that asks for the end of its thread or of the process has
        failed as well. Only where a person can press Ctrl-C, in the main thread, that ends the loop."""
        try:
            self._handle(record, context_of(record, self.spec.queue, attempt))
        except KeyboardInterrupt as error:
            if threading.current_thread() is threading.main_thread():
                raise
            return error
        except BaseException as error:
            return error
        return None

    def _pause(self, seconds: float, progress: PackProgress) -> None:
        """Wait in slices, so that the group hears of us however long the pause is."""
        while seconds > 0 and not self._stopping.wait(min(seconds, KEEP_ALIVE_EVERY_S)):
            seconds -= KEEP_ALIVE_EVERY_S
            progress.keep_alive()

    def _give_up(self, record: Record, error: BaseException, attempts: int, first_failed_at_ms: int) -> None:
        """Write the letter and wait for its acknowledgement: only then may the original count as done."""
        story = self._story(record, error, attempts, first_failed_at_ms)
        target = dead_letter_partition(self.spec.info)
        letter = to_letter(record, story)
        send_letter(self._provider.producer(), self._provider.admin(), target, letter, _LETTER_ACK_S)
        self._outcomes.dead_lettered(record, story)

    def _story(self, record: Record, error: BaseException, attempts: int, first_failed_at_ms: int) -> FailureStory:
        return FailureStory(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            queue_id=self.spec.queue_id,
            group=self.spec.group,
            handler=self.spec.handler,
            reason="retries_exhausted",
            attempts=attempts,
            first_failed_at_ms=first_failed_at_ms,
            failed_at_ms=self._clock.now_ms(),
            **describe_exception(error),
        )
