"""Where messages go, by the rows of queues: made into a routing table, and published to all producers."""

import logging
from collections.abc import Iterable, Iterator
from uuid import UUID

from django.db import Error as DatabaseError

from queueapi.choices import ROUTED_QUEUE_STATES
from queueapi.cluster.store import DatabaseStore
from queueapi.config import config
from queueapi.models import Queue
from queueapi.models.queue import PARTITION_FIELDS
from queuecore.errors import ConfigurationError, QueueError, StoreUnavailable
from queuecore.routing import QueueKey, RoutedQueue, RoutingTable
from queuecore.topics import SYSTEM_TENANT, ServiceType

logger = logging.getLogger(__name__)

_Entry = tuple[QueueKey, RoutedQueue]
# Queues that no table has, and why: said once in a process.
_left_out: dict[UUID, str] = {}


def publish_routing() -> int:
    """Let all producers send by the rows as they are: the version that says so. Repeatable; not within a transaction,
    as what that wrote may never be. StoreUnavailable, and a database's own errors."""
    store = DatabaseStore()
    while True:
        # Before the rows are read: where somebody publishes meanwhile, theirs may know rows that these do not have.
        before = store.routing_version()
        version = store.publish_routing_after(before, routing_table(_all_queues()))
        if version is not None:
            return version


def tell_producers() -> None:
    """`publish_routing` where that it fails is no reason to fail: the sweeper does it again."""
    try:
        publish_routing()
    except (StoreUnavailable, DatabaseError) as error:
        logger.warning("producers do not learn yet where messages go: %s", " ".join(str(error).split()))


def routing_table(queues: Iterable[Queue]) -> RoutingTable:
    """Of these, of which earlier ones come first. A row that no table can hold is left out and logged: it must not keep
    everybody else's messages from going where they should."""
    rows = list(queues)
    try:
        return _table(map(_entry, rows))
    except QueueError:
        return _table(_admitted(rows))


def check_routable(queue: Queue) -> None:
    """ConfigurationError or InvalidName where no routing table could hold it.

    Of a tenant's own queues that is any that is not the rule engine's. Nothing would ever find its way into one: by the
    rule that ThingsBoard has too, other services' messages go to the system's queues, whoever's they are.
    """
    _table([_entry(queue)])


def _all_queues() -> Iterable[Queue]:
    """Those that take messages."""
    rows = Queue.objects.filter(state__in=ROUTED_QUEUE_STATES).only(
        "id", "tenant", "name", "topic", "service_type", *PARTITION_FIELDS
    )
    return rows.order_by("created_at", "id")


def _entry(queue: Queue) -> _Entry:
    """A queue's topic is what it is called: the settings' prefix and inner partitions are for queues of programs."""
    key = QueueKey(ServiceType.of(queue.service_type), queue.name, queue.tenant_id)
    return key, RoutedQueue(queue.topic, queue.partitions, first_partition=queue.first_partition)


def _table(entries: Iterable[_Entry]) -> RoutingTable:
    """The version is its store's to give."""
    queues = dict(entries)
    isolated = frozenset(key.tenant for key in queues if key.tenant != SYSTEM_TENANT)
    return RoutingTable(0, queues, isolated, hash_name=config().queue.partitions.hash_function_name)


def _admitted(queues: Iterable[Queue]) -> Iterator[_Entry]:
    """Those that a table can hold, alone and beside those before."""
    taken: dict[object, Queue] = {}
    for queue in queues:
        try:
            check_routable(queue)
            claims = [*(name.replace(".", "_") for name in queue.topic_names()), (queue.tenant_id, queue.name.lower())]
            if other := next((taken[claim] for claim in claims if claim in taken), None):
                raise ConfigurationError(f"its name or topic is taken for that of queue {other.name}; rename one")
        except QueueError as error:
            _tell_left_out(queue, error.message)
            continue
        taken.update(dict.fromkeys(claims, queue))
        yield _entry(queue)


def _tell_left_out(queue: Queue, why: str) -> None:
    if _left_out.get(queue.pk) != why:
        logger.error("nothing can be sent to queue %s: %s", queue.name, why)
    _left_out[queue.pk] = why
