"""Producers and consumers for the services of the platform: which there may be, and how they are called."""

from queuecore.factories.channels import Channel
from queuecore.factories.kinds import Deployment
from queuecore.factories.protocols import (
    CoreQueueFactory,
    EdqsQueueFactory,
    MonolithQueueFactory,
    RuleEngineQueueFactory,
    ServiceQueueFactory,
    TransportQueueFactory,
    VersionControlQueueFactory,
)
from queuecore.factories.selecting import queue_factory

__all__ = [
    "Channel",
    "CoreQueueFactory",
    "Deployment",
    "EdqsQueueFactory",
    "MonolithQueueFactory",
    "RuleEngineQueueFactory",
    "ServiceQueueFactory",
    "TransportQueueFactory",
    "VersionControlQueueFactory",
    "queue_factory",
]
