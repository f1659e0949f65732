"""What is allowed, and seldom wanted: plans say so before a queue is made or changed."""

from collections.abc import Container, Iterable, Iterator

from queueapi.cluster.models import ServiceInstance
from queueapi.models import Queue
from queueapi.selectors.services import living
from queuecore.delivery import Delivery


def queue_warnings(
    queue: Queue, changed: Container[str], alive: Iterable[ServiceInstance] | None = None
) -> Iterator[str]:
    """Of those fields that are changed. Who knows already which services are there says so."""
    if "partitions" in changed:
        there = living() if alive is None else alive
        services = sum(queue.service_type in service.service_types for service in there)
        if services > queue.partitions:
            yield (
                f"{services} services consume queues of {queue.service_type}, and {queue.name} has {queue.partitions} "
                "partitions: some of them get nothing of it; use as many partitions as services, or more"
            )
    if "dlq_enabled" in changed and not queue.dlq_enabled:
        yield "without dead letters, messages that are given up are counted and logged, and gone"
    if "delivery" in changed and queue.delivery == Delivery.AT_MOST_ONCE:
        yield "delivered at most once, messages that are being handled when a host dies are lost"
    if "handler" in changed and queue.dead_letters.filter(state="open").exists():
        yield f"the queue's open dead letters are handled by {queue.handler} when they are replayed"
