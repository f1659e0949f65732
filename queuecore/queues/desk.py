"""What settling takes, whatever the delivery: send what handlers sent, put aside what cannot be sent, count."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from typing import Final

from queuecore.deadletter.fitting import lighten
from queuecore.errors import PayloadTooLarge, ProviderUnavailable, QueueError
from queuecore.messages import RecordMetadata
from queuecore.providers.base import Provider, QueueProducer
from queuecore.queues.counting import Counter
from queuecore.queues.handled import Handled
from queuecore.queues.letters import LetterWriter
from queuecore.queues.places import place_of
from queuecore.sending import Addressed, send
from queuecore.topics import ProviderPartition, TopicPartitionInfo

logger = logging.getLogger(__name__)

_ACK_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Desk:
    """One subscription's. For the thread that reads."""

    provider: Provider
    producer: QueueProducer
    group: str
    infos: Mapping[ProviderPartition, TopicPartitionInfo]
    # How long a partition that is given away may wait for the message under way.
    hand_over_s: float
    letters: LetterWriter
    counter: Counter
    # Whether a group that is new begins with what comes from now on.
    from_end: bool = False

    def refused(self, one: Handled, error: QueueError) -> Handled:
        """The letter that a message becomes whose handler sent what cannot be stored; of a letter that is too large
        itself, one with less in it. Any other letter that cannot be stored is raised, and so is the error where nothing
        was sent: the original stays where it is."""
        if one.is_letter:
            return _lighter(one, error)
        if not one.outgoing:
            raise error
        info = self.infos[place_of(one.record)]
        logger.error("%s@%d sent what cannot be stored: %s", info, one.record.offset, error)
        letter = self.letters.write(info, one.record, error, reason="output_refused", attempts=one.attempts)
        return Handled(one.record, (letter,), one.attempts, "dead_lettered")

    def count(self, handled: Iterable[Handled]) -> None:
        counts: dict[str, int] = defaultdict(int)
        for one in handled:
            counts[one.outcome] += one.count
        self.counter.add(**counts)

    def start_sending(self, handled: Iterable[Handled]) -> list[tuple[int, list["Future[RecordMetadata]"]]]:
        """Of those that sent something: which one, and what it has to wait for."""
        return [(index, self.send(one)) for index, one in enumerate(handled) if one.outgoing]

    def send(self, one: Handled) -> list["Future[RecordMetadata]"]:
        """What it has to wait for. ProviderUnavailable where there is no room to send."""
        return [send(self.producer, *addressed) for addressed in one.outgoing]

    def finish_sending(self, one: Handled, stored: Iterable["Future[RecordMetadata]"]) -> Handled:
        """What became of it: itself, or its letter, with all that it sent stored."""
        while True:
            try:
                _wait_for(stored)
            except QueueError as error:
                if error.retryable:
                    raise
                one = self.refused(one, error)
                stored = self.send(one)
            else:
                return one


def _lighter(one: Handled, error: QueueError) -> Handled:
    [(target, letter)] = one.outgoing
    lighter = lighten(letter) if isinstance(error, PayloadTooLarge) else None
    if lighter is None:
        raise error
    logger.warning("the letter of %s@%d is too large, and loses a part: %s", one.record.topic, one.record.offset, error)
    return replace(one, outgoing=(Addressed(target, lighter),))


def _wait_for(stored: Iterable["Future[RecordMetadata]"]) -> None:
    try:
        for future in stored:
            future.result(_ACK_S)
    except FutureTimeout:
        raise ProviderUnavailable(
            f"what a handler sent was not acknowledged within {_ACK_S:g} s; look at the provider"
        ) from None
