"""Another number of partitions on Kafka: the same steps, and offsets that transactions have left gaps in."""

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.resizing import resize_queue
from queueapi.choices import OperationState
from queueapi.models import Queue
from tests.integration.queue_kit import consume, fill, numbers_of, run_to_end, run_until_final, stored
from tests.integration.test_isolation_kafka import with_a_gap
from tests.integration.test_queue_life_kafka import named, tenant  # noqa: F401 a fixture


def test_a_queue_is_resized(tenant) -> None:  # noqa: F811 the fixture
    queue = named("Shared")
    fill(queue, tenant, 20)
    with_a_gap(queue)
    former = queue.topic_names()
    operation = resize_queue(SYSTEM, queue, partitions=4)
    run_to_end(operation)
    during = Queue.objects.get(pk=queue.pk)
    assert during.former_numbers == queue.routed_numbers
    fill(during, tenant, 10)
    consume(during.with_partitions(during.former_numbers))
    run_until_final(operation)
    after = Queue.objects.get(pk=queue.pk)
    assert (operation.state, after.partitions) == (OperationState.SUCCEEDED, 4)
    assert former.isdisjoint(there := set(runtime.provider().admin().topics()))
    assert after.topic_names() <= there
    assert stored(after) == numbers_of(10)
