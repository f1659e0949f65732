"""Who has been answered: counted, not listed, for every message passes here."""

from typing import Any

from confluent_kafka import KafkaError, Message

from queuecore.providers.kafka.connection import logger
from queuecore.providers.kafka.records import to_metadata


class Cohort:
    """The messages between one flush and the next. For the delivery's thread."""

    __slots__ = ("unanswered",)

    def __init__(self) -> None:
        self.unanswered = 0


class Sent(tuple[Any, ...]):
    """What the library calls for one message, on the delivery's thread: (delivery, cohort, callback, headers).

    A tuple, for a hundred thousand may be under way: it is made in one step, and is one object for the garbage
    collector to look at.
    """

    __slots__ = ()

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        delivery, cohort, callback, headers = self
        if error is not None:
            delivery.failed(cohort, callback, headers, error, message)
            return
        try:
            callback(to_metadata(message), None)
        except BaseException:
            logger.exception("a send callback raised; its message was stored")
        cohort.unanswered -= 1
