"""What settling takes, whatever the delivery: send what handlers sent, put aside what cannot be sent, count."""

import logging
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from typing import Final

from queuecore.deadletter.fitting import lighten
from queuecore.errors import PayloadTooLarge, ProviderUnavailable, QueueError
from queuecore.messages import RecordMetadata
from queuecore.providers.base import Provider, QueueProducer
from queuecore.queues.composing import Addressed
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
    # Whether a group that is new begins with what comes from now on.
    from_end: bool = False

    def refused(self, one: Handled, error: QueueError) -> Handled:
        """The letter that a message becomes whose handler sent what cannot be stored; of a letter that is too large
        itself, one with less in it. Any other letter that cannot be stored is raised: its original stays where it
        is."""
        if one.is_letter:
            return _lighter(one, error)
        logger.error("%s@%d sent what cannot be stored: %s", one.info, one.record.offset, error)
        letter = self.letters.write(one.info, one.record, error, reason="output_refused", attempts=one.attempts)
        return Handled(one.info, one.record, (letter,), one.attempts, is_letter=True)

    def count(self, handled: Iterable[Handled]) -> None:
        ones = list(handled)
        letters, skipped = sum(one.is_letter for one in ones), sum(one.is_skipped for one in ones)
        self.counter.add(handled=len(ones) - letters - skipped, dead_lettered=letters, skipped=skipped)

    def start_sending(self, handled: Iterable[Handled]) -> list[tuple[Handled, list["Future[RecordMetadata]"]]]:
        return [(one, [send(self.producer, *addressed) for addressed in one.outgoing]) for one in handled]

    def finish_sending(self, one: Handled, stored: Iterable["Future[RecordMetadata]"]) -> Handled:
        """What became of it: itself, or its letter, with all that it sent stored."""
        while True:
            try:
                _wait_for(stored)
            except QueueError as error:
                if error.retryable:
                    raise
                [(one, stored)] = self.start_sending([self.refused(one, error)])
            else:
                return one


def _lighter(one: Handled, error: QueueError) -> Handled:
    [(target, letter)] = one.outgoing
    lighter = lighten(letter) if isinstance(error, PayloadTooLarge) else None
    if lighter is None:
        raise error
    logger.warning("the letter of %s@%d is too large, and loses a part: %s", one.info, one.record.offset, error)
    return replace(one, outgoing=(Addressed(target, lighter),))


def _wait_for(stored: Iterable["Future[RecordMetadata]"]) -> None:
    try:
        for future in stored:
            future.result(_ACK_S)
    except FutureTimeout:
        raise ProviderUnavailable(
            f"what a handler sent was not acknowledged within {_ACK_S:g} s; look at the provider"
        ) from None
