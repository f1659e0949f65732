"""What settling takes, whatever the delivery: send what handlers sent, put aside what cannot be sent, count."""

import logging
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Final

from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.messages import RecordMetadata
from queuecore.providers.base import Provider, QueueProducer
from queuecore.queues.counting import Counter
from queuecore.queues.handling import Handled
from queuecore.queues.letters import LetterWriter
from queuecore.sending import send

logger = logging.getLogger(__name__)

_ACK_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Desk:
    """One subscription's. For the thread that reads."""

    provider: Provider
    producer: QueueProducer
    group: str
    # How long a partition that is given away may wait for the message under way.
    hand_over_s: float
    letters: LetterWriter
    counter: Counter

    def refused(self, one: Handled, error: QueueError) -> Handled:
        """The letter that a message becomes whose handler sent what cannot be stored. A letter that cannot be stored
        itself is raised: its original stays where it is."""
        if one.is_letter:
            raise error
        logger.error("%s@%d sent what cannot be stored: %s", one.info, one.record.offset, error)
        letter = self.letters.write(one.info, one.record, error, reason="output_refused", attempts=one.attempts)
        return Handled(one.info, one.record, (letter,), one.attempts, is_letter=True)

    def count(self, handled: Iterable[Handled]) -> None:
        letters = [one.is_letter for one in handled]
        self.counter.add(handled=len(letters) - sum(letters), dead_lettered=sum(letters))

    def start_sending(self, handled: Iterable[Handled]) -> list[tuple[Handled, list["Future[RecordMetadata]"]]]:
        return [(one, [send(self.producer, *addressed) for addressed in one.outgoing]) for one in handled]

    def finish_sending(self, one: Handled, stored: Iterable["Future[RecordMetadata]"]) -> Handled:
        """What became of it: itself, or its letter, with all that it sent stored."""
        try:
            _wait_for(stored)
        except QueueError as error:
            if error.retryable:
                raise
            [(letter, stored)] = self.start_sending([self.refused(one, error)])
            _wait_for(stored)
            return letter
        return one


def _wait_for(stored: Iterable["Future[RecordMetadata]"]) -> None:
    try:
        for future in stored:
            future.result(_ACK_S)
    except FutureTimeout:
        raise ProviderUnavailable(
            f"what a handler sent was not acknowledged within {_ACK_S:g} s; look at the provider"
        ) from None
