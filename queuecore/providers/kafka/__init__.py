"""`kafka`: Kafka's own guarantees, through confluent-kafka. Nothing outside this package imports that library."""

from queuecore.providers.kafka.provider import KafkaProvider

__all__ = ["KafkaProvider"]
