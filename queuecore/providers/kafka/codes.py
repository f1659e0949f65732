"""The library's error codes, by what they mean to us. An underscore marks those it makes itself, without a broker."""
# ruff: noqa: SLF001

from typing import Final

from confluent_kafka import KafkaError

from queuecore.errors import (
    ConfigurationError,
    GroupActive,
    InvalidMessage,
    InvalidName,
    NotAuthorised,
    NotOwner,
    OffsetOutOfRange,
    PayloadTooLarge,
    ProviderUnavailable,
    QueueError,
    UnknownTopic,
)


class CoordinatorMoves(ProviderUnavailable):
    """The broker that keeps a group's offsets is just starting or changing; asked again, it will answer."""


MEANING: Final[dict[int, type[QueueError]]] = {
    KafkaError._UNKNOWN_TOPIC: UnknownTopic,
    KafkaError._UNKNOWN_PARTITION: UnknownTopic,
    KafkaError.UNKNOWN_TOPIC_OR_PART: UnknownTopic,
    KafkaError.TOPIC_EXCEPTION: InvalidName,
    KafkaError.MSG_SIZE_TOO_LARGE: PayloadTooLarge,
    KafkaError.RECORD_LIST_TOO_LARGE: PayloadTooLarge,
    KafkaError.INVALID_RECORD: InvalidMessage,
    KafkaError.INVALID_TIMESTAMP: InvalidMessage,
    KafkaError.OFFSET_OUT_OF_RANGE: OffsetOutOfRange,
    KafkaError.ILLEGAL_GENERATION: NotOwner,
    KafkaError.UNKNOWN_MEMBER_ID: NotOwner,
    KafkaError.REBALANCE_IN_PROGRESS: NotOwner,
    KafkaError.FENCED_INSTANCE_ID: NotOwner,
    KafkaError._ASSIGNMENT_LOST: NotOwner,
    KafkaError.NON_EMPTY_GROUP: GroupActive,
    KafkaError.GROUP_SUBSCRIBED_TO_TOPIC: GroupActive,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: CoordinatorMoves,
    KafkaError.COORDINATOR_NOT_AVAILABLE: CoordinatorMoves,
    KafkaError.NOT_COORDINATOR: CoordinatorMoves,
    KafkaError.INVALID_PARTITIONS: ConfigurationError,
    KafkaError.INVALID_REPLICATION_FACTOR: ConfigurationError,
    KafkaError.INVALID_CONFIG: ConfigurationError,
    KafkaError.INVALID_SESSION_TIMEOUT: ConfigurationError,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: ConfigurationError,
    KafkaError.POLICY_VIOLATION: ConfigurationError,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.GROUP_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.SASL_AUTHENTICATION_FAILED: ConfigurationError,
    KafkaError._AUTHENTICATION: ConfigurationError,
}

# A consumer gets over these by itself.
PASSING: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._MAX_POLL_EXCEEDED, KafkaError._TIMED_OUT}
)
# What a commit meets while its group divides its partitions anew.
REBALANCING: Final = frozenset({KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION})
END_OF_PARTITION: Final = KafkaError._PARTITION_EOF
# A seek before the partition's first fetch.
NOT_STARTED: Final = KafkaError._STATE
# A send to a partition the library has not heard of.
NO_SUCH_PARTITION: Final = KafkaError._UNKNOWN_PARTITION
# What a question for offsets answers, for all partitions at once, when none of the topics exists.
NO_LEADERS: Final = KafkaError._NOENT
NO_SUCH_TOPIC: Final = KafkaError.UNKNOWN_TOPIC_OR_PART
NO_SUCH_GROUP: Final = KafkaError.GROUP_ID_NOT_FOUND
# What a commit from outside the group is told while the group has members.
NOT_A_MEMBER: Final = KafkaError.UNKNOWN_MEMBER_ID
TOPIC_EXISTS: Final = KafkaError.TOPIC_ALREADY_EXISTS
TIMED_OUT: Final = KafkaError._TIMED_OUT
