"""The queue runtime: messages, names, routing, providers and consuming. Plain typed Python.

Start with `open_queues`. What is listed in `__all__` is what programs are meant to use; `docs/reference/queuecore.md`
describes it. A provider's own library is imported only when that provider is opened.
"""

import typing

from queuecore.collector import collect_seldom
from queuecore.consuming.handler_options import SECRET_OPTION
from queuecore.consuming.handlers import find_handler, handler
from queuecore.consuming.registry import RegisteredHandler
from queuecore.deadletter.envelope import FailureStory
from queuecore.deadletter.policy import DeadLetterPolicy, OnLimit
from queuecore.delivery import Delivery
from queuecore.encoding import decode, encode
from queuecore.errors import (
    ConfigurationError,
    CorruptLog,
    DeadLetterLimitExceeded,
    Displaced,
    ForeignFile,
    GivenUp,
    GroupActive,
    HandlersStuck,
    InvalidMessage,
    InvalidName,
    LeaseLost,
    NotAuthorised,
    NotCoordinator,
    NotOwner,
    NotSupported,
    OffsetOutOfRange,
    OutOfSequence,
    PartitionFull,
    PayloadMissing,
    PayloadTooLarge,
    ProducerFenced,
    ProviderUnavailable,
    QueueError,
    QueueOverloaded,
    RequestCancelled,
    RequestFailed,
    RequestsStopped,
    RequestTimeout,
    StaleEpoch,
    StateUndone,
    StoreUnavailable,
    Superseded,
    TooManyRequests,
    TransactionAborted,
    UndecodableMessage,
    UnknownHandler,
    UnknownQueue,
    UnknownRebalance,
    UnknownService,
    UnknownTenant,
    UnknownTopic,
)
from queuecore.factories import (
    Channel,
    CoreQueueFactory,
    Deployment,
    EdqsQueueFactory,
    MonolithQueueFactory,
    RuleEngineQueueFactory,
    ServiceQueueFactory,
    TransportQueueFactory,
    VersionControlQueueFactory,
    queue_factory,
)
from queuecore.hashing import hash_function
from queuecore.messages import UNKNOWN_OFFSET, QueueMessage, Record, RecordMetadata
from queuecore.processing import ProcessingStrategy, ProcessingStrategyType, processing_strategy
from queuecore.providers.base import (
    AssignmentListener,
    Capabilities,
    GroupDescription,
    PartitionDescription,
    Provider,
    QueueAdmin,
    QueueConsumer,
    QueueProducer,
    QueueReader,
    TopicDescription,
    TopicSpec,
    Transaction,
    TransactionalProducer,
)
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.providers.opening import open_provider
from queuecore.providers.options import ConsumerOptions, KafkaOptions, KafkaSecurity, ProducerOptions
from queuecore.queues import (
    DeadLetter,
    DeliveryContext,
    MessageHandler,
    Queues,
    Subscription,
    SubscriptionCounts,
    open_queues,
)
from queuecore.requests import (
    Request,
    RequestCounts,
    RequestHandler,
    RequestOptions,
    RequestTemplate,
    RequestTopics,
    ResponseCounts,
    ResponseFuture,
    ResponseOptions,
    ResponseTemplate,
)
from queuecore.routing import QueueKey, RoutedQueue, Router, RoutingTable
from queuecore.sending import send, send_and_wait
from queuecore.submit import SubmitStrategy, SubmitStrategyType, submit_strategy
from queuecore.topics import (
    SYSTEM_TENANT,
    ProviderPartition,
    ServiceType,
    TopicPartitionInfo,
    notification_topic,
    response_topic,
)

if typing.TYPE_CHECKING:
    from queuecore.config.queue_options import queue_settings
    from queuecore.config.queue_tree import QueueSettings

__all__ = [
    "SECRET_OPTION",
    "SYSTEM_TENANT",
    "UNKNOWN_OFFSET",
    "AssignmentListener",
    "Capabilities",
    "Channel",
    "ConfigurationError",
    "ConsumerOptions",
    "CoreQueueFactory",
    "CorruptLog",
    "DeadLetter",
    "DeadLetterLimitExceeded",
    "DeadLetterPolicy",
    "Delivery",
    "DeliveryContext",
    "Deployment",
    "Displaced",
    "EdqsQueueFactory",
    "FailureStory",
    "ForeignFile",
    "GivenUp",
    "GroupActive",
    "GroupDescription",
    "HandlersStuck",
    "InvalidMessage",
    "InvalidName",
    "KafkaOptions",
    "KafkaSecurity",
    "LeaseLost",
    "MemoryProvider",
    "MemoryStorage",
    "MessageHandler",
    "MonolithQueueFactory",
    "NotAuthorised",
    "NotCoordinator",
    "NotOwner",
    "NotSupported",
    "OffsetOutOfRange",
    "OnLimit",
    "OutOfSequence",
    "PartitionDescription",
    "PartitionFull",
    "PayloadMissing",
    "PayloadTooLarge",
    "ProcessingStrategy",
    "ProcessingStrategyType",
    "ProducerFenced",
    "ProducerOptions",
    "Provider",
    "ProviderPartition",
    "ProviderUnavailable",
    "QueueAdmin",
    "QueueConsumer",
    "QueueError",
    "QueueKey",
    "QueueMessage",
    "QueueOverloaded",
    "QueueProducer",
    "QueueReader",
    "QueueSettings",
    "Queues",
    "Record",
    "RecordMetadata",
    "RegisteredHandler",
    "Request",
    "RequestCancelled",
    "RequestCounts",
    "RequestFailed",
    "RequestHandler",
    "RequestOptions",
    "RequestTemplate",
    "RequestTimeout",
    "RequestTopics",
    "RequestsStopped",
    "ResponseCounts",
    "ResponseFuture",
    "ResponseOptions",
    "ResponseTemplate",
    "RoutedQueue",
    "Router",
    "RoutingTable",
    "RuleEngineQueueFactory",
    "ServiceQueueFactory",
    "ServiceType",
    "StaleEpoch",
    "StateUndone",
    "StoreUnavailable",
    "SubmitStrategy",
    "SubmitStrategyType",
    "Subscription",
    "SubscriptionCounts",
    "Superseded",
    "TooManyRequests",
    "TopicDescription",
    "TopicPartitionInfo",
    "TopicSpec",
    "Transaction",
    "TransactionAborted",
    "TransactionalProducer",
    "TransportQueueFactory",
    "UndecodableMessage",
    "UnknownHandler",
    "UnknownQueue",
    "UnknownRebalance",
    "UnknownService",
    "UnknownTenant",
    "UnknownTopic",
    "VersionControlQueueFactory",
    "collect_seldom",
    "decode",
    "encode",
    "find_handler",
    "handler",
    "hash_function",
    "notification_topic",
    "open_provider",
    "open_queues",
    "processing_strategy",
    "queue_factory",
    "queue_settings",
    "response_topic",
    "send",
    "send_and_wait",
    "submit_strategy",
]

# The settings bring a YAML reader with them, which only those need who read a file.
_SETTINGS = {"QueueSettings": "queuecore.config.queue_tree", "queue_settings": "queuecore.config.queue_options"}


def __getattr__(name: str) -> typing.Any:
    if name not in _SETTINGS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_SETTINGS[name]), name)
