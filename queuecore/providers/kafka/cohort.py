"""Who has been answered: counted, not listed, for every message passes here."""

import itertools
from typing import Any

from confluent_kafka import KafkaError, Message

from queuecore.providers.kafka.connection import logger
from queuecore.providers.kafka.records import to_metadata


class Cohort:
    """The sends between one flush and the next.

    A sender counts itself in with `next(cohort.entered)`, on any thread and without a lock: that is one step of the
    interpreter. Only the delivery's thread adds to `left`.
    """

    __slots__ = ("_looks", "entered", "left")

    def __init__(self) -> None:
        self.entered = itertools.count()
        self.left = 0
        self._looks = 0

    def unanswered(self) -> int:
        """How many have entered and not left. To be called under the delivery's lock."""
        # A counter is read by counting, so earlier looks are among what it has counted.
        entered = next(self.entered) - self._looks
        self._looks += 1
        return entered - self.left


class Sent(tuple[Any, ...]):
    """What the library calls for one message, on the delivery's thread: (delivery, cohort, callback, headers).

    A tuple, for a hundred thousand may be under way: it is made in one step, and is one object for the garbage
    collector to look at.
    """

    __slots__ = ()

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        delivery, cohort, callback, headers = self
        if not delivery.turn.is_taken:
            delivery.turn.take()
        if error is not None:
            delivery.failed(cohort, callback, headers, error, message)
            return
        try:
            callback(to_metadata(message), None)
        except BaseException:
            logger.exception("a send callback raised; its message was stored")
        cohort.left += 1
