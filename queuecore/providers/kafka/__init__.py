"""`kafka`: Kafka's own guarantees. Messages go through confluent-kafka, which is librdkafka; topics, offsets and groups
are administered through kafka-python. Nothing outside this package imports either library."""

from queuecore.providers.kafka.provider import KafkaProvider

__all__ = ["KafkaProvider"]
