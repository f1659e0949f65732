"""One message in the hands of its handler: attempt after attempt, until it succeeds or is given up."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.deadletter.replay import is_for_another
from queuecore.messages import REPLAY_LETTER, TENANT_ID, Record, text_header
from queuecore.processing import RetryFailed
from queuecore.queues.checking import refuse_promise
from queuecore.queues.composing import Addressed, Composer
from queuecore.queues.context import DeliveryContext, MessageHandler, Outbox
from queuecore.queues.counting import Counter
from queuecore.queues.letters import LetterWriter
from queuecore.topics import ProviderPartition, TopicPartitionInfo

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handled:
    """A message its handler is done with, and what has to be stored before it counts as done: what the handler sent,
    or the letter that it became."""

    info: TopicPartitionInfo
    record: Record
    outgoing: tuple[Addressed, ...]
    attempts: int
    is_letter: bool = False
    # A replay for another group: done without the handler.
    is_skipped: bool = False

    @property
    def place(self) -> ProviderPartition:
        return self.info.place


class Attempts:
    """Hands messages to the handler, under a retry policy. For the handler's thread."""

    def __init__(
        self,
        queue: str,
        group: str,
        infos: Mapping[ProviderPartition, TopicPartitionInfo],
        handler: MessageHandler,
        retry: RetryFailed,
        composer: Composer,
        letters: LetterWriter,
        counter: Counter,
        stopping: threading.Event,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._queue = queue
        self._group = group
        self._infos = infos
        self._handler: Callable[[Record, DeliveryContext], object] = handler
        self._retry = retry
        self._composer = composer
        self._letters = letters
        self._counter = counter
        self._stopping = stopping
        self._clock = clock

    def handle(self, record: Record) -> Handled | None:
        """None: stopped between two attempts, so it is not done."""
        info = self._infos[ProviderPartition(record.topic, record.partition)]
        if is_for_another(record.headers, self._group):
            return Handled(info, record, (), 0, is_skipped=True)
        state = self._retry.state()
        first_failed_at_ms = 0
        while True:
            outbox = Outbox(self._composer)
            error = self._attempt(record, self._context(record, info, state.failures + 1, outbox))
            outgoing = outbox.close()
            if error is None:
                return Handled(info, record, outgoing, state.failures + 1)
            first_failed_at_ms = first_failed_at_ms or self._clock.now_ms()
            pause_ms = state.pause_before_next_ms()
            if pause_ms is None:
                return self._give_up(info, record, error, state.failures, first_failed_at_ms)
            logger.info("%s@%d failed and is tried again in %d ms: %r", info, record.offset, pause_ms, error)
            if self._stopping.wait(pause_ms / 1000):
                return None
            self._counter.add(retried=1)

    def _attempt(self, record: Record, context: DeliveryContext) -> BaseException | None:
        """What the handler raised, whatever that is: one that asks for the end of its thread or of the process has
        failed as well. So has one that returns a promise, which nobody would keep."""
        try:
            refuse_promise(self._handler(record, context))
        except BaseException as error:
            return error
        return None

    def _context(self, record: Record, info: TopicPartitionInfo, attempt: int, outbox: Outbox) -> DeliveryContext:
        headers = record.headers
        return DeliveryContext(
            self._queue,
            attempt,
            text_header(headers, TENANT_ID),
            text_header(headers, REPLAY_LETTER),
            partition=info.partition or 0,
            _outbox=outbox,
        )

    def _give_up(
        self, info: TopicPartitionInfo, record: Record, error: BaseException, attempts: int, first_failed_at_ms: int
    ) -> Handled:
        letter = self._letters.write(
            info,
            record,
            error,
            reason="retries_exhausted",
            attempts=attempts,
            first_failed_at_ms=first_failed_at_ms,
        )
        logger.error("%s@%d failed %d times and goes to %s: %r", info, record.offset, attempts, letter.info, error)
        return Handled(info, record, (letter,), attempts, is_letter=True)
