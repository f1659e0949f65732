"""Sending."""

from queuecore.providers.base import SendFunction, SendManyFunction, refuse, refuse_many
from queuecore.providers.kafka.delivery import Delivery


class KafkaProducer:
    """One user's way into the process's one delivery: what is sent through several shares batches.

    Stopping one leaves the others as they are. It waits for what was sent, at most as long as the brokers may take to
    answer a question; what they have not answered by then is answered later, at the latest when the provider closes.
    """

    # The delivery's own: one call less for every message.
    send: SendFunction
    send_many: SendManyFunction

    def __init__(self, delivery: Delivery, default_topic: str) -> None:
        self._delivery = delivery
        self._default_topic = default_topic
        self.send = delivery.send
        self.send_many = delivery.send_many

    @property
    def default_topic(self) -> str:
        return self._default_topic

    def flush(self, timeout_s: float) -> bool:
        return self._delivery.flush(timeout_s)

    def stop(self) -> None:
        self.send = refuse
        self.send_many = refuse_many
        self._delivery.drain()
