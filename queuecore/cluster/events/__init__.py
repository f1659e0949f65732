"""What changes in a cluster, derived from two views of it, told to listeners, and sent to other instances."""

from queuecore.cluster.events.bus import EventBus
from queuecore.cluster.events.diffing import NOTHING_SEEN, diff, diff_for_all
from queuecore.cluster.events.encoding import EVENT_KINDS, decode_event, encode_event, event_kind
from queuecore.cluster.events.events import (
    EVENT_TYPES,
    ClusterTopologyChangeEvent,
    Event,
    PartitionChangeEvent,
    ServiceListChangedEvent,
)

__all__ = [
    "EVENT_KINDS",
    "EVENT_TYPES",
    "NOTHING_SEEN",
    "ClusterTopologyChangeEvent",
    "Event",
    "EventBus",
    "PartitionChangeEvent",
    "ServiceListChangedEvent",
    "decode_event",
    "diff",
    "diff_for_all",
    "encode_event",
    "event_kind",
]
