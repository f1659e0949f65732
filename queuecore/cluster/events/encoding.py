"""Events as notifications that can be sent."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import UUID

from google.protobuf.message import Message

from queuecore.cluster.events.events import (
    ClusterTopologyChangeEvent,
    Event,
    PartitionChangeEvent,
    ServiceListChangedEvent,
)
from queuecore.cluster.kinds import NOTIFICATION, kind_of
from queuecore.encoding import decode, encode
from queuecore.errors import UndecodableMessage
from queuecore.messages import QueueMessage, Record
from queuecore.proto import cluster_pb2 as wire
from queuecore.routing import QueueKey
from queuecore.topics import ServiceType


def _from_topology(event: ClusterTopologyChangeEvent) -> Message:
    queues = [
        wire.QueueRef(service_type=key.service_type, queue=key.queue, tenant=str(key.tenant))
        for key in sorted(event.queues)
    ]
    return wire.ClusterTopologyChange(sequence=event.sequence, queues=queues)


def _to_topology(message: wire.ClusterTopologyChange) -> Event:
    queues = {QueueKey(ServiceType(one.service_type), one.queue, UUID(one.tenant)) for one in message.queues}
    return ClusterTopologyChangeEvent(message.sequence, frozenset(queues))


def _from_partitions(event: PartitionChangeEvent) -> Message:
    return wire.PartitionChange(
        sequence=event.sequence,
        service_id=event.service_id,
        partitions=event.partitions,
        removed=sorted(event.removed),
    )


def _to_partitions(message: wire.PartitionChange) -> Event:
    partitions = dict(message.partitions)
    return PartitionChangeEvent(message.sequence, message.service_id, partitions, frozenset(message.removed))


def _from_services(event: ServiceListChangedEvent) -> Message:
    return wire.ServiceListChange(sequence=event.sequence, current=event.current, others=event.others)


def _to_services(message: wire.ServiceListChange) -> Event:
    return ServiceListChangedEvent(message.sequence, message.current, tuple(message.others))


class _Form(NamedTuple):
    """How events of one kind are written and read."""

    kind: str
    message_type: type[Message]
    write: Callable[[Any], Message]
    read: Callable[[Any], Event]


_FORMS: Final[dict[type[Event], _Form]] = {
    ClusterTopologyChangeEvent: _Form(
        "cluster.topology_change", wire.ClusterTopologyChange, _from_topology, _to_topology
    ),
    PartitionChangeEvent: _Form("cluster.partition_change", wire.PartitionChange, _from_partitions, _to_partitions),
    ServiceListChangedEvent: _Form(
        "cluster.service_list_changed", wire.ServiceListChange, _from_services, _to_services
    ),
}
_BY_KIND: Final = {form.kind: form for form in _FORMS.values()}
EVENT_KINDS: Final = tuple(_BY_KIND)


def event_kind(kind: type[Event]) -> str:
    """What the header of such a notification says."""
    return _FORMS[kind].kind


def encode_event(event: Event) -> QueueMessage:
    """The event as a notification."""
    form = _FORMS[type(event)]
    return encode(form.write(event), headers={NOTIFICATION: form.kind.encode()})


def decode_event(record: Record) -> Event | None:
    """The event that a notification is; None for one of another kind. UndecodableMessage where its payload is not what
    its header says."""
    if (form := _BY_KIND.get(kind_of(record))) is None:
        return None
    message = decode(record, form.message_type)
    try:
        return form.read(message)
    except ValueError as error:
        where = f"{record.topic}[{record.partition}]@{record.offset}"
        raise UndecodableMessage(
            f"{where} says {form.kind}, and cannot be read: {error}", topic=record.topic
        ) from error
