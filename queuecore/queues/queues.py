"""Queues for a program of your own."""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import MessageHandler, Payload
from queuecore.consuming.marks import FileMarks, MarkStore, NoMarks
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.deadletter.foreign import Origin
from queuecore.deadletter.policy import DeadLetterPolicy
from queuecore.deadletter.reading import DeadLetter, read_letters
from queuecore.deadletter.replay import to_replay
from queuecore.deadletter.writing import letter_target
from queuecore.delivery import Delivery
from queuecore.errors import ConfigurationError, InvalidMessage
from queuecore.hashing import DEFAULT_HASH, Entity
from queuecore.messages import NO_HEADERS, Headers, RecordMetadata
from queuecore.metrics.recorder import Recorder
from queuecore.metrics.reporting import reporting
from queuecore.processing import ProcessingStrategy, ProcessingStrategyType
from queuecore.providers.base import DAY_MS, FOR_EVER, Cleanup, Provider, TopicSpec
from queuecore.providers.options import OffsetReset
from queuecore.queues.checking import check_handler, check_state_queue, create_letter_topic
from queuecore.queues.composing import Composer
from queuecore.queues.directory import QueueDirectory
from queuecore.queues.roster import Roster
from queuecore.queues.subscription import Subscription
from queuecore.routing import RoutedQueue
from queuecore.sending import send
from queuecore.submit import SubmitStrategy, SubmitStrategyType, submit_strategy

logger = logging.getLogger(__name__)

DEFAULT_PROCESSING: Final = ProcessingStrategy(ProcessingStrategyType.RETRY_FAILED)
DEFAULT_LETTERS: Final = DeadLetterPolicy()
_STOP_WITHIN_S: Final = 30.0
_POLL_MS: Final = 100


class Queues:
    """Create queues, publish to them, subscribe to them. Safe from any thread; belongs to the process that made it.

    provider     where the messages live; closed with the queues
    producer_id  who sends, for the header `producerId`; by default host and process
    hash_name    which partition an entity's messages go to; all programs that publish to a queue must agree on it
    debug        whether messages also say from which thread and which line they were sent
    hand_over_s  how long a partition that goes to another subscriber waits for the message at hand, which is else
                 handled again there; to be less than the provider's `session_timeout_ms`
    auto_offset_reset  where a group begins that is new: `earliest`, or `latest` as in the provider's ConsumerOptions
    marks_folder  where is noted what handlers are at, for all processes of this machine that subscribe: a message that
                  kills its process is found by it, and becomes a dead letter; None: it is delivered again and again
    metrics_interval_s  how often is reported to the topic `queue.metrics` what was published and consumed, for whoever
                        reads it (`recorder` shows it in this process); None: nothing is

    Subscriptions that still run when the queues are closed are stopped.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        producer_id: str | None = None,
        hash_name: str = DEFAULT_HASH,
        debug: bool = False,
        hand_over_s: float = 5.0,
        auto_offset_reset: OffsetReset = "earliest",
        marks_folder: Path | str | None = None,
        metrics_interval_s: float | None = None,
    ) -> None:
        producer_id = producer_id or f"{socket.gethostname()}-{os.getpid()}"
        self._provider = provider
        self._recorder = None if metrics_interval_s is None else Recorder(producer_id)
        self._directory = QueueDirectory(provider.admin(), hash_name)
        self._composer = Composer(self._directory, producer_id, debug=debug)
        self._hand_over_s = hand_over_s
        self._auto_offset_reset = auto_offset_reset
        self._marks: MarkStore = NoMarks() if marks_folder is None else FileMarks(Path(marks_folder))
        self._producer = provider.producer()
        self._reporting = ExitStack()
        if self._recorder is not None and metrics_interval_s is not None:
            self._reporting.enter_context(reporting(provider, self._recorder, metrics_interval_s))
            self._producer = self._recorder.counted(self._producer)
        self._roster = Roster()
        self._closed = threading.Event()

    @property
    def provider(self) -> Provider:
        """Where the messages live, for what is not offered here."""
        return self._provider

    @property
    def recorder(self) -> Recorder | None:
        """What was published and consumed, where that is reported: for a `RuntimeCollector` of Prometheus."""
        return self._recorder

    def create(
        self,
        queue: str,
        partitions: int = 1,
        *,
        retention_ms: int = 7 * DAY_MS,
        retention_bytes: int = FOR_EVER,
        cleanup: Cleanup = "delete",
        use_internal_partition: bool = False,
    ) -> None:
        """Create a queue, unless it is there already: every program that uses it may say so at its start.

        Each partition is a topic of its own, `<queue>.<n>`; with `use_internal_partition`, all are inside one topic
        `<queue>`. Messages that are given up go to `<queue>.dlq`. A retention of -1 is for ever.

        InvalidName where no provider could hold the name. ConfigurationError where the queue is there with another
        number of partitions, which never changes, as it decides where an entity's messages go; and where other topics
        are in its place. Either way nothing is created.
        """
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise ConfigurationError(f"queue {queue!r}: partitions is {partitions!r}; use a whole number from 1 on")
        routed = RoutedQueue(queue, partitions, use_internal_partition=use_internal_partition)
        spec = TopicSpec(queue, 1, retention_ms, retention_bytes, cleanup=cleanup)
        self._directory.create(routed, spec)

    def names(self) -> list[str]:
        """All queues of this provider."""
        return self._directory.names()

    def publish(
        self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS
    ) -> "Future[RecordMetadata]":
        """Send a message; the future ends with where it is stored, or with the QueueError that says why it is not.

        All messages of one entity (a UUID, text or bytes) go to the same partition and keep their order; those of None
        are spread evenly. The payload is bytes or a Protocol Buffers message. UnknownQueue and InvalidMessage are
        raised at once; so is ProviderUnavailable when the provider's buffer stays full.
        """
        info, message = self._composer.compose(queue, entity, payload, headers)
        stored = send(self._producer, info, message)
        stored.add_done_callback(_log_refusal)
        return stored

    def flush(self, timeout_s: float = 60.0) -> bool:
        """True when all that was published is stored or refused, within the time."""
        return self._producer.flush(timeout_s)

    def subscribe(
        self,
        queue: str,
        handler: MessageHandler,
        *,
        group: str,
        delivery: Delivery | str = Delivery.AT_LEAST_ONCE,
        submit: SubmitStrategy | SubmitStrategyType | str = SubmitStrategyType.SEQUENTIAL,
        processing: ProcessingStrategy = DEFAULT_PROCESSING,
        letters: DeadLetterPolicy = DEFAULT_LETTERS,
        timeout_s: float | None = None,
        concurrency: int = 4,
        state_queue: str = "",
    ) -> Subscription:
        """Have a handler run for every message of a queue, on threads of its own, from where the group is.

        Subscriptions of the same group share the queue; each group gets all messages. A handler is a function or an
        `async def`. One that raises has failed: by default the message is tried again three times, and meanwhile holds
        up what follows it in its partition. Then it becomes a dead letter in `<queue>.dlq`, with the reason, and the
        next one's turn comes. With `at_most_once` nothing is tried again.

        submit       in which order messages are handed over: by default one after the other in each partition; with
                     `SEQUENTIAL_BY_ORIGINATOR` one after the other for each entity, with `BURST` in no order
        processing   what becomes of messages that fail or time out
        letters      what becomes of those that are given up
        timeout_s    how long the handler may take for one message; None: for ever
        concurrency  how many messages are handled side by side, where `submit` allows more than one
        state_queue  a compacted queue, divided as this one is, with what the handler remembers in `context.state`; for
                     this group alone

        UnknownQueue where there is none of that name; NotSupported for `exactly_once` on a provider without
        transactions; ConfigurationError for a handler that cannot be one, for a strategy that there is not, or for a
        queue that cannot hold the state.
        """
        if not group:
            raise ConfigurationError("a subscription needs a group; those of the same group share the messages")
        check_handler(handler)
        partitions = self._directory.partitions(queue)
        if state_queue:
            check_state_queue(partitions, self._directory.partitions(state_queue), self._provider.admin().topics())
        if letters.enabled and letters.topic:
            create_letter_topic(self._provider.admin(), letters.topic, partitions)
        plan = ConsumptionPlan(
            queue,
            group,
            partitions,
            getattr(handler, "__qualname__", type(handler).__qualname__),
            delivery=Delivery.of(delivery, self._provider.capabilities),
            submit=submit_strategy(submit) if isinstance(submit, str) else submit,
            processing=processing,
            letters=letters,
            timeout_ms=None if timeout_s is None else round(timeout_s * 1000),
            concurrency=concurrency,
            poll_interval_ms=_POLL_MS,
            hand_over_s=self._hand_over_s,
            from_end=self._auto_offset_reset == "latest",
            state_topic=state_queue,
        )
        consumption = self._roster.add(
            lambda: Consumption(
                plan,
                self._provider,
                handler,
                composer=self._composer,
                marks=self._marks,
                producer=self._producer,
                recording=self._recorder,
            )
        )
        return Subscription(consumption, self._provider)

    def dead_letters(self, queue: str, letters: DeadLetterPolicy = DEFAULT_LETTERS) -> Iterator[DeadLetter]:
        """What was given up of a queue's messages, partition by partition, the oldest first; in the topic of its own
        that `letters` names, if it does. UnknownQueue where there is none of that name."""
        targets = [letter_target(info, letters) for info in self._directory.partitions(queue)]
        return (letter for letter in read_letters(self._provider, targets) if letter.story.queue_id in (queue, ""))

    def replay(self, letter: DeadLetter) -> "Future[RecordMetadata]":
        """Send a dead letter's message again, to the partition it came from. Only the group that gave it up handles it;
        the others pass it over. The letter stays where it is: remember which ones you have replayed. If it fails again
        it becomes another letter.

        PayloadMissing for a letter that is not complete, InvalidMessage for one whose message has been replayed too
        often (`MAX_REPLAYS` of `queuecore.deadletter.replay`) or that another system wrote, UnknownQueue where its
        queue is gone.
        """
        if letter.story.origin is not Origin.SWITCHYARD:
            raise InvalidMessage(
                f"this letter is of {letter.story.origin}, and names no queue of ours; publish its `message` yourself"
            )
        partitions = self._directory.partitions(letter.story.queue_id)
        info = partitions[letter.record.partition % len(partitions)]
        stored = send(self._producer, info, to_replay(letter))
        stored.add_done_callback(_log_refusal)
        return stored

    def close(self) -> None:
        """Stop the subscriptions, store what was published, and close the provider. Raises what ended a subscription,
        unless that has been raised before. A handler may call this too, and is not waited for: the queues close once
        it has returned."""
        is_first = self._roster.close()
        if self._roster.has_this_thread:
            if is_first:
                threading.Thread(target=self._close, name="queues-closing").start()
            return
        if is_first:
            self._close()
        self._closed.wait()
        self._roster.raise_unseen()

    def _close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._closed.set)
            closing.callback(self._provider.close)
            # After all that was published has been answered.
            closing.callback(self._reporting.close)
            closing.callback(self._producer.stop)
            self._roster.stop(_STOP_WITHIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception:
            # In the log already; an exception that is under way is the one to be seen.
            if kind is None:
                raise


def _log_refusal(stored: "Future[RecordMetadata]") -> None:
    """Nobody has to look at the future; what is lost is said all the same."""
    if (error := stored.exception()) is not None:
        logger.error("a published message is not stored: %s", error)
