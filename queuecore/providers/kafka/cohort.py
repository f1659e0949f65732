"""Who has been answered: counted, not listed, for every message passes here."""

from typing import Any

from confluent_kafka import KafkaError, Message

from queuecore.providers.base import Brief
from queuecore.providers.kafka.connection import logger
from queuecore.providers.kafka.records import to_metadata


class Cohort:
    """The messages between one flush and the next. Two counts, as two write them: who hands a message to the library,
    with the delivery's right to, and the delivery's thread, which answers."""

    __slots__ = ("answered", "sent")

    def __init__(self) -> None:
        self.sent = self.answered = 0

    @property
    def unanswered(self) -> int:
        return self.sent - self.answered


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
            if type(callback) is Brief:
                function, thing = callback
                function(thing, None)
            else:
                callback(to_metadata(message), None)
        except BaseException:
            logger.exception("a send callback raised; its message was stored")
        cohort.answered += 1
