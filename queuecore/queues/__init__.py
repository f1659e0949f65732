"""Queues for a program of your own: create, publish, subscribe. Start with `open_queues`."""

from queuecore.consuming.context import DeliveryContext, MessageHandler
from queuecore.deadletter.reading import DeadLetter
from queuecore.queues.counting import SubscriptionCounts
from queuecore.queues.opening import open_queues
from queuecore.queues.queues import Queues
from queuecore.queues.subscription import Subscription

__all__ = [
    "DeadLetter",
    "DeliveryContext",
    "MessageHandler",
    "Queues",
    "Subscription",
    "SubscriptionCounts",
    "open_queues",
]
