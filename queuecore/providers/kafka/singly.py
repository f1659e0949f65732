"""What was refused in company is sent again alone."""

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Message

from queuecore.clock import Clock
from queuecore.errors import QueueError
from queuecore.providers.kafka.codes import COMPANY_REFUSED
from queuecore.providers.kafka.connection import Connection, Setting, logger
from queuecore.providers.kafka.library_producer import LibraryProducer
from queuecore.providers.kafka.records import DeliveryReport, KafkaHeaders


class Singly:
    """The brokers refuse a whole batch for one message in it, or because all of it is larger than the topic takes as
    one. So its messages get a second chance, each in a batch of its own: now only those fail that have to. They keep
    their order, but what was sent after them may be stored before.

    It rarely happens, so the second client is opened when it does. For the delivery's thread.
    """

    def __init__(self, connection: Connection, settings: Mapping[str, Setting], clock: Clock) -> None:
        self._connection = connection
        self._settings = settings
        self._clock = clock
        self._library: LibraryProducer | None = None

    def again(self, error: KafkaError, message: Message, headers: KafkaHeaders | None, report: DeliveryReport) -> bool:
        """Whether it is sent again. One that fills a batch was alone already."""
        if error.code() not in COMPANY_REFUSED or len(message) >= int(self._settings["batch.size"]):
            return False
        where = (message.topic(), message.value(), message.key(), message.partition())
        try:
            if self._library is None:
                settings = {**self._settings, "batch.num.messages": 1}
                self._library = LibraryProducer(self._connection, settings, self._clock)
            self._library.produce(*where, report, None, 0, headers)
        except (BufferError, KafkaException, QueueError) as failure:
            logger.warning("what was refused in company cannot be sent again alone: %s", failure)
            return False
        return True

    def poll(self) -> None:
        if self._library is not None:
            self._library.poll(0)

    def purge(self) -> None:
        if self._library is not None:
            self._library.purge()
