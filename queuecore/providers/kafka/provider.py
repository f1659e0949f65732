"""The `kafka` provider as a whole."""

import threading

from queuecore.errors import ConfigurationError
from queuecore.providers.kafka.admin import KafkaAdmin
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.consumer import KafkaConsumer
from queuecore.providers.kafka.producer import KafkaProducer
from queuecore.providers.kafka.reader import KafkaReader


class KafkaProvider:
    """One cluster. Nothing connects before it is used, so an unreachable broker is no error yet. Open it after a
    fork, never before.

    `timeout_s` bounds every request and every delivery: who waits longer gets ProviderUnavailable.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str = "switchyard",
        replication_factor: int = 1,
        timeout_s: float = 15,
    ) -> None:
        if not bootstrap_servers.strip():
            raise ConfigurationError("Kafka has no bootstrap servers; name at least one, as host:port")
        self._connection = Connection(bootstrap_servers, client_id, timeout_s)
        self._replication_factor = replication_factor
        self._lock = threading.Lock()
        self._producer: KafkaProducer | None = None
        self._admin: KafkaAdmin | None = None

    def producer(self) -> KafkaProducer:
        """The process's one producer: whoever sends through it shares its batches."""
        with self._lock:
            if self._producer is None:
                self._producer = KafkaProducer(self._connection)
            return self._producer

    def consumer(self, group: str) -> KafkaConsumer:
        return KafkaConsumer(self._connection, group, self.admin().check)

    def reader(self) -> KafkaReader:
        return KafkaReader(self._connection)

    def admin(self) -> KafkaAdmin:
        with self._lock:
            if self._admin is None:
                self._admin = KafkaAdmin(self._connection, self._replication_factor)
            return self._admin

    def close(self) -> None:
        """Stop the producer. Consumers and readers are their users' to stop."""
        with self._lock:
            if self._producer is not None:
                self._producer.stop()
