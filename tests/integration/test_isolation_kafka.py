"""Isolation on Kafka: the same topics, the same cut, and offsets that transactions have left gaps in."""

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.isolation import isolate_tenant, return_to_shared
from queueapi.choices import IsolationState, QueueState
from queueapi.models import Queue
from queuecore.messages import QueueMessage
from tests.integration.queue_kit import ENTITIES, consume, fill, numbers_of, run_to_end, run_until_final, stored
from tests.integration.test_queue_life_kafka import named, tenant  # noqa: F401 a fixture
from workers.operations import returning


def test_a_tenant_is_isolated_and_returns(tenant, monkeypatch) -> None:  # noqa: F811 the fixture
    # As if hosts held the tenant back at once.
    monkeypatch.setattr(returning, "unheld", lambda *_: "")
    shared = named("Shared")
    fill(shared, tenant, 20)
    with_a_gap(shared)
    request = isolate_tenant(SYSTEM, tenant, [{"name": "Shared", "partitions": 3}], "noisy")
    run_to_end(request.operation)
    request.refresh_from_db()
    assert request.state == IsolationState.HANDING_OVER
    fill(shared, tenant, 10)
    own = Queue.objects.get(tenant=tenant)
    assert (own.state, stored(own)) == (QueueState.HANDING_OVER, numbers_of(10))
    consume(shared)
    run_until_final(request.operation)
    request.refresh_from_db()
    assert request.state == IsolationState.ACTIVE
    names = {f"{shared.topic}.isolated.{tenant.id}.{number}" for number in range(3)}
    assert names <= set(runtime.provider().admin().topics())
    consume(own)
    request = return_to_shared(SYSTEM, request)
    run_until_final(request.operation)
    request.refresh_from_db()
    assert request.state == IsolationState.RETIRED
    assert names.isdisjoint(runtime.provider().admin().topics())


def with_a_gap(queue: Queue) -> None:
    """A transaction that is committed leaves an offset behind that holds no message."""
    producer = runtime.provider().transactional_producer(f"gap-{queue.pk}")
    with producer.begin() as chunk:
        for info in queue.partition_infos():
            chunk.send(info, QueueMessage(ENTITIES[0], b"1000"))
    producer.stop()
