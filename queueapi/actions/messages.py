"""Publishing messages to queues."""

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from queueapi import runtime
from queueapi.addressing import addresses
from queueapi.errors import InvalidInput
from queueapi.identity import service_id
from queueapi.models import Queue, Tenant
from queueapi.routing import tell_producers
from queuecore.clock import SYSTEM_CLOCK
from queuecore.errors import PayloadTooLarge, UnknownQueue
from queuecore.messages import PRODUCER_ID, TENANT_ID, TIMESTAMP, QueueMessage, encode_millis
from queuecore.sending import send_and_wait
from queuecore.topics import TopicPartitionInfo

# What a topic takes, less the room that a dead letter needs for its story.
MAX_PAYLOAD_BYTES = 1024 * 1024 - 64 * 1024
_ACK_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class PublishedMessage:
    """Where a message was stored; `partition` is the queue's, whatever the provider calls it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


def publish_message(queue: Queue, tenant: Tenant, entity: UUID, payload: bytes) -> PublishedMessage:
    """Store one message of an entity and return where. InvalidInput for a tenant whose messages the queue does
    not take, another QueueError where the provider refused it."""
    if queue.only_tenant_id not in (None, tenant.id):
        raise InvalidInput(
            f"queue {queue.name} takes the messages of tenant {queue.only_tenant_id} alone, not of {tenant.id}; "
            "name that tenant, or choose a queue that everyone shares"
        )
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(f"the payload has {len(payload)} bytes; {MAX_PAYLOAD_BYTES} is the most")
    info = _address(queue, entity)
    headers = {
        PRODUCER_ID: service_id().encode(),
        TIMESTAMP: encode_millis(SYSTEM_CLOCK.now_ms()),
        TENANT_ID: str(tenant.id).encode(),
    }
    message = QueueMessage(entity, payload, headers)
    producer = runtime.provider().producer()
    stored = send_and_wait(producer, info, message, _ACK_TIMEOUT_S)
    return PublishedMessage(stored.topic, info.partition or 0, stored.offset, stored.timestamp_ms)


def _address(queue: Queue, entity: UUID) -> TopicPartitionInfo:
    """A queue that is in no routing version yet is published here: who created it may have died before that."""
    try:
        return addresses().resolve_exactly(queue.tenant_id, queue.name, entity)
    except UnknownQueue:
        transaction.on_commit(tell_producers)
        return addresses().resolve_exactly(queue.tenant_id, queue.name, entity)
