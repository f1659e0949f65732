"""Publishing messages to queues."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from queueapi.addressing import addresses
from queueapi.admission import admission
from queueapi.backlog import check_backlog
from queueapi.change_plans import Change, ChangePlan
from queueapi.choices import ENDING_QUEUE_STATES, ROUTED_QUEUE_STATES, QueueState
from queueapi.errors import InvalidInput, QueueNotActive
from queueapi.identity import service_id
from queueapi.models import Queue, Tenant
from queueapi.queue_addresses import QueueAddresses
from queueapi.reporting import counted_producer
from queueapi.routing import routing_table, tell_producers
from queueapi.selectors.published_queues import find_own_queue, is_there
from queueapi.selectors.queue_operations import DRAIN, RETURN
from queueapi.selectors.services import living
from queuecore.clock import SYSTEM_CLOCK
from queuecore.errors import PayloadTooLarge, UnknownQueue
from queuecore.messages import PRODUCER_ID, TENANT_ID, TIMESTAMP, QueueMessage, RecordMetadata, encode_millis
from queuecore.topics import SYSTEM_TENANT, TopicPartitionInfo

# What a topic takes, less the room that a dead letter needs for its story.
MAX_PAYLOAD_BYTES = 1024 * 1024 - 64 * 1024
_ACK_TIMEOUT_S = 10

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class PublishedMessage:
    """Where a message was stored; `partition` is the queue's, whatever the provider calls it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


def publish_message(queue: Queue, tenant: Tenant, entity: UUID, payload: bytes) -> PublishedMessage:
    """Store one message of an entity and return where. InvalidInput for a tenant whose messages the queue does
    not take, QueueNotActive for a queue that is not there yet, is drained or deleted, QueueOverloaded for one that has
    all it may, TenantSuspended and QueueOverloaded for a tenant that may not publish now, another QueueError where the
    provider refused it. What a queue gets that is drained for another one goes there."""
    queue = taking(queue)
    _check(queue, tenant, payload)
    getting = getting_queue(queue, tenant.id)
    check_backlog(getting)
    is_own = getting.only_tenant_id is not None
    admission().admit(tenant.id, len(payload), to_own_queue=is_own)
    info, stored = _store(queue, QueueMessage(entity, payload, origin_headers_of(tenant.id)))
    check_still_there(queue)
    admission().published(tenant.id, len(payload), to_own_queue=is_own)
    return PublishedMessage(stored.topic, info.partition or 0, stored.offset, stored.timestamp_ms)


def plan_message(queue: Queue, tenant: Tenant, entity: UUID, payload: bytes) -> ChangePlan:
    """What `publish_message` would do now; sends nothing. Refuses what that refuses, but for the provider's reasons."""
    queue = taking(queue)
    _check(queue, tenant, payload)
    queue = getting_queue(queue, tenant.id)
    check_backlog(queue)
    admission().check(tenant.id, len(payload), to_own_queue=queue.only_tenant_id is not None)
    info = planned_address(queue, entity)
    change = planned_change(queue, info, entity, len(payload))
    return ChangePlan("one message would be stored", (change,), tuple(waits(queue, {tenant.id}, {info.partition})))


def planned_address(queue: Queue, entity: UUID) -> TopicPartitionInfo:
    """As `address_of`, and tells nobody: a queue that is in no routing version yet would be once it is published to."""
    try:
        return addresses().resolve_exactly(queue.tenant_id, queue.name, entity)
    except UnknownQueue:
        return QueueAddresses(routing_table([queue])).resolve_exactly(queue.tenant_id, queue.name, entity)


def planned_change(queue: Queue, info: TopicPartitionInfo, entity: UUID, size: int) -> Change:
    place = f"topic {info.full_topic_name}, partition {info.partition or 0} of {queue.name}"
    return Change(place, None, f"one message of {size} bytes of {entity}")


def waits(queue: Queue, tenants: Collection[UUID], partitions: Collection[int | None]) -> Iterator[str]:
    """Why messages of these tenants in these partitions would not be consumed at once."""
    of_tenants, of_partitions = Q(tenant=None) | Q(tenant__in=tenants), Q(partition=None) | Q(partition__in=partitions)
    for pause in queue.pauses.filter(of_tenants, of_partitions).select_related("queue", "tenant"):
        yield f"it would wait: paused is {pause}"
    if not living().exists():
        yield "nobody consumes at the moment: what is sent waits"


def _check(queue: Queue, tenant: Tenant, payload: bytes) -> None:
    if queue.only_tenant_id not in (None, tenant.id):
        raise InvalidInput(
            f"queue {queue.name} takes the messages of tenant {queue.only_tenant_id} alone, not of {tenant.id}; "
            "name that tenant, or choose a queue that everyone shares"
        )
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(f"the payload has {len(payload)} bytes; {MAX_PAYLOAD_BYTES} is the most")


def origin_headers_of(tenant_id: UUID) -> dict[str, bytes]:
    """Who sends, when, and whose message it is."""
    return {
        PRODUCER_ID: service_id().encode(),
        TIMESTAMP: encode_millis(SYSTEM_CLOCK.now_ms()),
        TENANT_ID: str(tenant_id).encode(),
    }


def taking(queue: Queue) -> Queue:
    """The queue that takes what is published to this one. QueueNotActive."""
    if queue.state in ENDING_QUEUE_STATES and queue.successor is not None and _passes_on(queue):
        queue = queue.successor
    if queue.state not in ROUTED_QUEUE_STATES:
        raise _not_active(queue)
    return queue


def getting_queue(queue: Queue, tenant_id: UUID) -> Queue:
    """The queue that gets what is published to this one for the tenant, and whose limits hold for it: an isolated
    tenant's own. With the fields that publishing needs. StoreUnavailable."""
    if queue.only_tenant_id is not None or tenant_id == SYSTEM_TENANT:
        return queue
    try:
        is_own = addresses().is_own(tenant_id, queue.name)
    except UnknownQueue:
        # It comes into a routing version with its first message.
        return queue
    return (is_own and find_own_queue(queue.name, tenant_id)) or queue


def check_still_there(queue: Queue) -> None:
    """Who deletes a queue says so first, and then looks what it has: whoever finds it there afterwards was in time."""
    if not is_there(queue.pk):
        raise QueueNotActive(
            f"queue {queue.name} was deleted while the message was stored, and nobody may handle it there; send it to "
            "another queue"
        )


def address_of(queue: Queue, entity: UUID) -> TopicPartitionInfo:
    """Where the entity's messages go, of whom no tenant's own queue has them. QueueNotActive."""
    return _known(queue, lambda: addresses().resolve_exactly(queue.tenant_id, queue.name, entity))


def _store(queue: Queue, message: QueueMessage) -> tuple[TopicPartitionInfo, RecordMetadata]:
    producer = counted_producer()
    return _known(queue, lambda: addresses().store(producer, queue.tenant_id, queue.name, message, _ACK_TIMEOUT_S))


def _known(queue: Queue, ask: Callable[[], Found]) -> Found:
    """What is asked of the routing. A queue that is in no version yet is published here: who created it may have died
    before that. QueueNotActive where it is not there any more."""
    try:
        return ask()
    except UnknownQueue:
        transaction.on_commit(tell_producers)
    try:
        return ask()
    except UnknownQueue:
        now = Queue.objects.filter(pk=queue.pk).first()
        if now is None or now.state not in ROUTED_QUEUE_STATES:
            raise _not_active(now or queue) from None
        raise


def _passes_on(queue: Queue) -> bool:
    """Not where it is deleted: what is moved to the other queue then must come before what is sent there. A tenant's
    messages that return to a shared queue wait there for those before them."""
    return queue.operation is not None and queue.operation.kind in (DRAIN, RETURN)


def _not_active(queue: Queue) -> QueueNotActive:
    told = {
        QueueState.CREATING: "is being created; try again when it is active",
        QueueState.DRAINING: "is being drained and takes no more messages; activate it, or choose another queue",
    }.get(queue.state_choice, "is being deleted; choose another queue")
    return QueueNotActive(f"queue {queue.name} {told}", queue=str(queue.pk), state=queue.state)
