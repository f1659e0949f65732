"""Sending."""

from collections.abc import Callable

from queuecore.errors import ProviderUnavailable
from queuecore.messages import QueueMessage
from queuecore.providers.base import SendCallback
from queuecore.providers.kafka.delivery import Delivery
from queuecore.topics import TopicPartitionInfo


class KafkaProducer:
    """One user's way into the process's one delivery: what is sent through several shares batches.

    Stopping one leaves the others as they are. It waits for what was sent, at most as long as the brokers may take to
    answer a question; what they have not answered by then is answered later, at the latest when the provider closes.
    """

    # The delivery's own: one call less for every message.
    send: Callable[[TopicPartitionInfo, QueueMessage, SendCallback], None]

    def __init__(self, delivery: Delivery, default_topic: str) -> None:
        self._delivery = delivery
        self._default_topic = default_topic
        self.send = delivery.send

    @property
    def default_topic(self) -> str:
        return self._default_topic

    def flush(self, timeout_s: float) -> bool:
        return self._delivery.flush(timeout_s)

    def stop(self) -> None:
        self.send = _refuse
        self._delivery.drain()


def _refuse(_info: TopicPartitionInfo, _message: QueueMessage, _callback: SendCallback) -> None:
    raise ProviderUnavailable("this producer has been stopped; open a new one")
