"""Queues with messages in them, and a look at what became of both."""

from contextlib import closing
from functools import partial
from uuid import UUID, uuid5

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.isolation import isolate_tenant
from queueapi.actions.messages import publish_message
from queueapi.actions.queues import create_queue
from queueapi.backlog import messages_left
from queueapi.choices import QueueState
from queueapi.models import Operation, Queue, Tenant
from queueapi.plans import consumption_plans
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.messages import Record
from queuecore.providers.base import QueueConsumer
from queuecore.testing.waiting import wait_until
from workers.operations.runner import run_operation

ENTITIES = [uuid5(UUID(int=0), str(number)) for number in range(7)]


def new_queue(tenant: Tenant, name: str, **options: object) -> Queue:
    return create_queue(SYSTEM, tenant, **{"name": name, "topic": name.lower(), "handler": "log", **options})


def fill(queue: Queue, tenant: Tenant, count: int, first: int = 0) -> None:
    """So many messages, dealt out to the entities, each with its number."""
    for number in range(first, first + count):
        publish_message(queue, tenant, ENTITIES[number % len(ENTITIES)], b"%d" % number)


def consume(queue: Queue) -> list[Record]:
    """All that waits, as its consumers would: read and committed in the queue's own groups."""
    read: list[Record] = []
    for plan in consumption_plans(queue, ""):
        consumer = runtime.provider().consumer(plan.group, member_id=plan.member_id)
        consumer.subscribe(plan.infos)
        wait_until(partial(_consume_some, queue, plan, consumer, read))
        consumer.unsubscribe()
        consumer.stop()
    return read


def _consume_some(queue: Queue, plan: ConsumptionPlan, consumer: QueueConsumer, read: list[Record]) -> bool:
    """Whether that was all. A group may take its time to give out its partitions."""
    if records := consumer.poll(300):
        read += records
        consumer.commit()
    return not messages_left(queue, {info.partition for info in plan.infos})


def run_to_end(operation: Operation) -> Operation:
    """The operation after one run, whatever came of it."""
    Operation.objects.filter(pk=operation.pk).update(due_at=None)
    run_operation(operation.pk)
    operation.refresh_from_db()
    return operation


def run_until_told(operation: Operation, text: str) -> None:
    """Until that is what it waits for: producers hear of a new routing version in their own time."""

    def is_told() -> bool:
        last = run_to_end(operation).log.last()
        return last is not None and last.text == text

    wait_until(is_told)


def stored(queue: Queue) -> dict[UUID, list[int]]:
    """The numbers that each entity has in the queue, in their order."""
    found: dict[UUID, list[int]] = {}
    with closing(runtime.provider().reader()) as reader:
        for info in queue.partition_infos():
            for record in reader.read(info.place, 0, 1_000_000):
                found.setdefault(UUID(str(record.key)), []).append(int(record.data))
    return found


def numbers_of(count: int) -> dict[UUID, list[int]]:
    """What `fill` has given to each entity."""
    return {entity: list(range(place, count, len(ENTITIES))) for place, entity in enumerate(ENTITIES[:count])}


def isolated(tenant: Tenant, shared: Queue, **options: object) -> Queue:
    """The tenant's own queue of that name, handed over: nothing that waits in the shared one may be in its way."""
    request = isolate_tenant(SYSTEM, tenant, [{"name": shared.name, **options}], "test")
    assert request.operation is not None
    run_until_final(request.operation)
    return Queue.objects.get(tenant=tenant, name=shared.name, state=QueueState.ACTIVE)


def run_until_final(operation: Operation) -> Operation:
    """As a worker and the sweeper would: again and again until it has ended."""
    wait_until(lambda: run_to_end(operation).state_choice.is_final)
    return operation
