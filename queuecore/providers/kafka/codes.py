"""The library's error codes, by what they mean to us. An underscore marks those it makes itself, without a broker."""
# ruff: noqa: SLF001

from typing import Final

from confluent_kafka import KafkaError

from queuecore.errors import (
    ConfigurationError,
    InvalidName,
    NotOwner,
    PayloadTooLarge,
    QueueError,
    UnknownTopic,
)

MEANING: Final[dict[int, type[QueueError]]] = {
    KafkaError._UNKNOWN_TOPIC: UnknownTopic,
    KafkaError._UNKNOWN_PARTITION: UnknownTopic,
    KafkaError.UNKNOWN_TOPIC_OR_PART: UnknownTopic,
    KafkaError.TOPIC_EXCEPTION: InvalidName,
    KafkaError.MSG_SIZE_TOO_LARGE: PayloadTooLarge,
    KafkaError.RECORD_LIST_TOO_LARGE: PayloadTooLarge,
    KafkaError.ILLEGAL_GENERATION: NotOwner,
    KafkaError.UNKNOWN_MEMBER_ID: NotOwner,
    KafkaError.REBALANCE_IN_PROGRESS: NotOwner,
    KafkaError.FENCED_INSTANCE_ID: NotOwner,
    KafkaError._ASSIGNMENT_LOST: NotOwner,
    KafkaError.INVALID_PARTITIONS: ConfigurationError,
    KafkaError.INVALID_REPLICATION_FACTOR: ConfigurationError,
    KafkaError.INVALID_CONFIG: ConfigurationError,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: ConfigurationError,
    KafkaError.GROUP_AUTHORIZATION_FAILED: ConfigurationError,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: ConfigurationError,
    KafkaError.SASL_AUTHENTICATION_FAILED: ConfigurationError,
    KafkaError._AUTHENTICATION: ConfigurationError,
}

# A consumer gets over these by itself.
PASSING: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._MAX_POLL_EXCEEDED, KafkaError._TIMED_OUT}
)
END_OF_PARTITION: Final = KafkaError._PARTITION_EOF
# What a question for offsets answers, for all partitions at once, when none of the topics exists.
NO_LEADERS: Final = KafkaError._NOENT
NO_SUCH_TOPIC: Final = KafkaError.UNKNOWN_TOPIC_OR_PART
TOPIC_EXISTS: Final = KafkaError.TOPIC_ALREADY_EXISTS
