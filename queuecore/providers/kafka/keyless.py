"""Which topics take messages without a key."""

import threading
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from queuecore.clock import Clock
from queuecore.errors import InvalidMessage
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.options import ProducerOptions

# How long a topic is taken to be compacted still.
_REFUSE_S: Final = 1.0


class KeylessTopics:
    """A compacted topic takes none, and the brokers refuse the whole batch that such a message is in. So it is asked
    beforehand whether a topic is compacted: once, when the first message without a key is sent to it.

    Where the brokers do not say, the message is sent, and they will say then. Safe from any thread.
    """

    def __init__(self, connection: Connection, options: ProducerOptions, clock: Clock) -> None:
        self._connection = connection
        self._timeout_s = max(0.001, min(connection.timeout_s, options.max_block_ms / 1000))
        self._clock = clock
        self._lock = threading.Lock()
        self._client: AdminClient | None = None
        self._compacted: dict[str, float] = {}
        self.allowed: set[str] = set()

    def check(self, topic: str) -> None:
        """InvalidMessage where the topic is compacted."""
        now = self._clock.monotonic()
        if now < self._compacted.get(topic, 0.0):
            raise _refused(topic)
        if self._is_compacted(topic):
            self._compacted[topic] = now + _REFUSE_S
            raise _refused(topic)
        self.allowed.add(topic)

    def forget(self, topic: str) -> None:
        """The brokers say otherwise."""
        self.allowed.discard(topic)

    def _is_compacted(self, topic: str) -> bool:
        with self._lock:
            client = self._client = self._client or self._connection.open(AdminClient, {})
        resource = ConfigResource(ResourceType.TOPIC, topic)
        [future] = client.describe_configs([resource], request_timeout=self._timeout_s).values()
        try:
            return "compact" in (future.result()["cleanup.policy"].value or "")
        except KafkaException:
            return False
        finally:
            client.poll(0)


def _refused(topic: str) -> InvalidMessage:
    return InvalidMessage(f"cannot send to {topic}: it is compacted and takes no message without a key; give it one")
