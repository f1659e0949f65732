"""Messages to one instance of a service, instead of to whoever has a partition.

An instance has a `NotificationInbox`, others reach it through a `Notifier`, and what instances that are gone for good
leave behind is removed by `remove_abandoned_topics`.
"""

from queuecore.cluster.kinds import NOTIFICATION, kind_of, notification
from queuecore.cluster.notifications.abandoned import DEFAULT_LIMIT_S, Sweep, remove_abandoned_topics
from queuecore.cluster.notifications.inbox import InboxCounts, NotificationInbox, NotificationListener
from queuecore.cluster.notifications.names import (
    inbox_addresses,
    inbox_group,
    inbox_specs,
    notification_address,
    notification_bases,
    personal_families,
)
from queuecore.cluster.notifications.notifier import Notifier

__all__ = [
    "DEFAULT_LIMIT_S",
    "NOTIFICATION",
    "InboxCounts",
    "NotificationInbox",
    "NotificationListener",
    "Notifier",
    "Sweep",
    "inbox_addresses",
    "inbox_group",
    "inbox_specs",
    "kind_of",
    "notification",
    "notification_address",
    "notification_bases",
    "personal_families",
    "remove_abandoned_topics",
]
