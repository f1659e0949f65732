"""The library's error codes, by what they mean to us. An underscore marks those it makes itself, without a broker."""
# ruff: noqa: SLF001

from typing import Final

from confluent_kafka import KafkaError

from queuecore.errors import (
    ConfigurationError,
    Displaced,
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
    KafkaError._INVALID_DIFFERENT_RECORD: InvalidMessage,
    KafkaError.INVALID_TIMESTAMP: InvalidMessage,
    KafkaError.OFFSET_OUT_OF_RANGE: OffsetOutOfRange,
    KafkaError.ILLEGAL_GENERATION: NotOwner,
    KafkaError.UNKNOWN_MEMBER_ID: NotOwner,
    KafkaError.REBALANCE_IN_PROGRESS: NotOwner,
    KafkaError.FENCED_INSTANCE_ID: Displaced,
    KafkaError.STALE_MEMBER_EPOCH: NotOwner,
    KafkaError.FENCED_MEMBER_EPOCH: NotOwner,
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
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.SASL_AUTHENTICATION_FAILED: ConfigurationError,
    KafkaError._AUTHENTICATION: ConfigurationError,
    KafkaError._SSL: ConfigurationError,
}

# What a client says of a topic or partition that there is not, or of which it has not heard yet.
NOT_KNOWN: Final = frozenset(code for code, kind in MEANING.items() if kind is UnknownTopic)
# A consumer gets over these by itself.
PASSING: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._MAX_POLL_EXCEEDED, KafkaError._TIMED_OUT}
)
# A member that did not poll for too long.
TOO_LATE: Final = KafkaError._MAX_POLL_EXCEEDED
# What a commit meets while its group divides its partitions anew.
REBALANCING: Final = frozenset(
    {KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.STALE_MEMBER_EPOCH}
)
# What a consumer says whose place in the group another has taken, or whom the group can never take.
FATAL: Final = KafkaError._FATAL
# What the brokers say to the first of these.
PLACE_TAKEN: Final = KafkaError.FENCED_INSTANCE_ID
# Why a connection to one broker failed.
FAILED_CONNECTION: Final = frozenset({KafkaError._TRANSPORT, KafkaError._RESOLVE})
# Signs that no broker can be reached.
AWAY: Final = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})
# Signs that they do not take this client for whom it says it is, or it them.
UNTRUSTED: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED})
END_OF_PARTITION: Final = KafkaError._PARTITION_EOF
# A seek before the partition's first fetch.
NOT_STARTED: Final = KafkaError._STATE
# A send to a partition the library has not heard of.
NO_SUCH_PARTITION: Final = KafkaError._UNKNOWN_PARTITION
NO_RIGHT_TO_GROUP: Final = KafkaError.GROUP_AUTHORIZATION_FAILED
# A newer producer has the transactional id.
FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
# Said of every message of a batch for the sake of one, or of their sum.
COMPANY_REFUSED: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError._INVALID_DIFFERENT_RECORD,
    }
)
# Messages that were not sent because their transaction had failed.
PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
