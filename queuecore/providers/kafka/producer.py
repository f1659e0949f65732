"""Sending."""

from queuecore.errors import ProviderUnavailable
from queuecore.messages import QueueMessage
from queuecore.providers.base import SendCallback
from queuecore.providers.kafka.delivery import Delivery
from queuecore.topics import TopicPartitionInfo


class KafkaProducer:
    """One user's way into the process's one delivery: what is sent through several shares batches.

    Stopping one leaves the others as they are.
    """

    def __init__(self, delivery: Delivery, default_topic: str) -> None:
        self._delivery = delivery
        self._default_topic = default_topic
        self._stopped = False

    @property
    def default_topic(self) -> str:
        return self._default_topic

    def send(self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> None:
        if self._stopped:
            raise ProviderUnavailable("this producer has been stopped; open a new one")
        self._delivery.send(info.place, message, callback)

    def flush(self, timeout_s: float) -> bool:
        return self._delivery.flush(timeout_s)

    def stop(self) -> None:
        self._stopped = True
        self._delivery.drain()
