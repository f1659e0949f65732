"""One message in the hands of its handler: attempt after attempt, until it succeeds or is given up."""

import logging
import threading
from collections.abc import Callable

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.deadletter.replay import is_for_another
from queuecore.messages import Record
from queuecore.processing import RetryFailed
from queuecore.queues.checking import refuse_promise
from queuecore.queues.context import DeliveryContext, MessageHandler, OpenDelivery, Workplace
from queuecore.queues.counting import Counter
from queuecore.queues.handled import Handled
from queuecore.queues.letters import LetterWriter
from queuecore.queues.places import place_of
from queuecore.topics import TopicPartitionInfo

logger = logging.getLogger(__name__)


class Attempts:
    """Hands messages to the handler, under a retry policy. For the handler's thread."""

    def __init__(
        self,
        workplace: Workplace,
        group: str,
        handler: MessageHandler,
        retry: RetryFailed,
        letters: LetterWriter,
        counter: Counter,
        stopping: threading.Event,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._workplace = workplace
        self._group = group
        self._handler: Callable[[Record, DeliveryContext], object] = handler
        self._retry = retry
        self._letters = letters
        self._counter = counter
        self._stopping = stopping
        self._clock = clock

    def handle(self, record: Record) -> Handled | bool:
        """True: done, and there is nothing to store. False: stopped between two attempts, so it is not done."""
        if is_for_another(record.headers, self._group):
            return Handled(record, (), 0, "skipped")
        delivery = OpenDelivery(self._workplace, record, 1)
        if (error := self._attempt(record, delivery)) is not None:
            return self._try_again(record, error)
        outgoing = delivery.close()
        return Handled(record, outgoing) if outgoing else True

    def _attempt(self, record: Record, delivery: OpenDelivery) -> BaseException | None:
        """What the handler raised, whatever that is: one that asks for the end of its thread or of the process has
        failed as well. So has one that returns a promise, which nobody would keep."""
        try:
            if (returned := self._handler(record, delivery)) is not None:
                refuse_promise(returned)
        except BaseException as error:
            delivery.close()
            return error
        return None

    def _try_again(self, record: Record, error: BaseException) -> Handled | bool:
        """After a first attempt that failed."""
        info = self._workplace.infos[place_of(record)]
        state = self._retry.state()
        first_failed_at_ms = self._clock.now_ms()
        while (pause_ms := state.pause_before_next_ms()) is not None:
            logger.info("%s@%d failed and is tried again in %d ms: %r", info, record.offset, pause_ms, error)
            if self._stopping.wait(pause_ms / 1000):
                return False
            self._counter.add(retried=1)
            delivery = OpenDelivery(self._workplace, record, state.failures + 1)
            if (failure := self._attempt(record, delivery)) is None:
                return Handled(record, delivery.close(), state.failures + 1)
            error = failure
        return self._give_up(info, record, error, state.failures, first_failed_at_ms)

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
        return Handled(record, (letter,), attempts, "dead_lettered")
