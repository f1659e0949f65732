"""The `kafka` provider as a whole."""

import threading
from typing import Final

from queuecore.errors import ConfigurationError
from queuecore.providers.base import Capabilities
from queuecore.providers.kafka.admin import KafkaAdmin
from queuecore.providers.kafka.checking import check_settings
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.consumer import KafkaConsumer
from queuecore.providers.kafka.delivery import Delivery
from queuecore.providers.kafka.producer import KafkaProducer
from queuecore.providers.kafka.reader import KafkaReader
from queuecore.providers.kafka.topic_settings import TOPIC_PROPERTIES
from queuecore.providers.kafka.transactions import KafkaTransactionalProducer
from queuecore.providers.options import (
    DEFAULT_CONSUMING,
    DEFAULT_KAFKA,
    DEFAULT_KAFKA_PRODUCING,
    ConsumerOptions,
    KafkaOptions,
    ProducerOptions,
)

CAPABILITIES: Final = Capabilities(
    durable=True,
    transactions=True,
    compaction=True,
    group_strategies=True,
    topic_properties=frozenset(TOPIC_PROPERTIES),
)


class KafkaProvider:
    """One cluster. Nothing connects before it is used, so an unreachable broker is no error yet; a setting that is
    wrong is. Open it after a fork, never before.

    `kafka` says how the cluster is reached and what it is asked for.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        kafka: KafkaOptions = DEFAULT_KAFKA,
        producing: ProducerOptions = DEFAULT_KAFKA_PRODUCING,
        consuming: ConsumerOptions = DEFAULT_CONSUMING,
    ) -> None:
        if not bootstrap_servers.strip():
            raise ConfigurationError("Kafka has no bootstrap servers; name at least one, as host:port")
        self._connection = Connection(bootstrap_servers, kafka)
        check_settings(self._connection, producing, consuming)
        self._producing = producing
        self._consuming = consuming
        self._lock = threading.Lock()
        self._delivery: Delivery | None = None
        self._admin: KafkaAdmin | None = None

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def producer(self, default_topic: str = "", *, lasting: bool = True) -> KafkaProducer:  # noqa: ARG002
        """All producers of the process share batches. Brokers have messages on several machines, and wait for no disk:
        all of them last."""
        with self._lock:
            if self._delivery is None:
                self._delivery = Delivery(self._connection, self._producing)
            return KafkaProducer(self._delivery, default_topic)

    def transactional_producer(self, transactional_id: str) -> KafkaTransactionalProducer:
        return KafkaTransactionalProducer(self._connection, transactional_id, self._producing)

    def consumer(
        self, group: str, topic: str = "", *, member_id: str | None = None, max_poll_records: int | None = None
    ) -> KafkaConsumer:
        options = self._consuming.with_at_most(max_poll_records)
        admin = self.admin()
        return KafkaConsumer(self._connection, group, topic, options, admin.check, member_id, is_member=admin.is_member)

    def reader(self) -> KafkaReader:
        return KafkaReader(self._connection, self._consuming)

    def admin(self) -> KafkaAdmin:
        with self._lock:
            if self._admin is None:
                self._admin = KafkaAdmin(self._connection, self._producing.max_request_size)
            return self._admin

    def close(self) -> None:
        """Stop the producers. Consumers, readers and transactional producers are their users' to stop."""
        with self._lock:
            delivery, admin = self._delivery, self._admin
        # A callback that runs meanwhile may ask for something here.
        if delivery is not None:
            delivery.stop()
        if admin is not None:
            admin.close()
        self._connection.outage.close()
