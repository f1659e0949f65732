"""Real services for tests and for trying Switchyard out: Kafka, PostgreSQL and Redis on loopback.

`python -m queuecore.testing.services` runs them until Ctrl-C; the fixtures in `tests/services.py` give them
to tests. Both use the classes here.
"""

from queuecore.testing.services.base import Service
from queuecore.testing.services.errors import ServiceError, ServiceFailed, ServiceMissing
from queuecore.testing.services.kafka import KafkaService
from queuecore.testing.services.kafka_cluster import KafkaCluster
from queuecore.testing.services.kafka_secured import SecuredKafka
from queuecore.testing.services.postgres import PostgresService
from queuecore.testing.services.redis import RedisService

SERVICES: dict[str, type[Service]] = {
    service.name: service for service in (KafkaService, PostgresService, RedisService)
}

__all__ = [
    "SERVICES",
    "KafkaCluster",
    "KafkaService",
    "PostgresService",
    "RedisService",
    "SecuredKafka",
    "Service",
    "ServiceError",
    "ServiceFailed",
    "ServiceMissing",
]
