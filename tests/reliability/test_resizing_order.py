"""Messages under way while their queue gets other numbers of partitions: none is lost, and those of each entity are
handled in their order. Hosts and producers are processes of their own."""

from contextlib import ExitStack

import pytest
from django.db import connections

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.resizing import resize_queue
from queueapi.actions.tenants import create_tenant
from queueapi.backlog import messages_left
from queueapi.choices import OperationState
from queueapi.models import Operation, Queue
from queuecore.testing.waiting import wait_until
from tests.integration.conftest import installation  # noqa: F401 a fixture
from tests.integration.queue_kit import run_to_end
from tests.processes import Child
from tests.reliability.test_isolation_order import firsts, host, hosts_have_heard, produce, read


@pytest.fixture(params=[True, False], ids=["a consumer for each partition", "one for all"])
def queue(request, installation) -> Queue:  # noqa: F811 the fixture
    told = {"name": "Flow", "topic": "flow", "handler": "test.isolation.order", "partitions": 3}
    how = {"submit_strategy": "SEQUENTIAL_BY_ORIGINATOR", "consumer_per_partition": request.param}
    return create_queue(SYSTEM, installation.queue.tenant, **told, **how)


def test_order_survives_more_and_fewer_partitions(installation, queue, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr("workers.operations.waiting._PATIENCE_S", 0.5)
    journal = tmp_path / "handled"
    journal.touch()
    tenants = [installation.tenant.pk, create_tenant(SYSTEM, "Foundry").pk]
    runtime.close_provider()
    connections.close_all()
    with ExitStack() as children:
        hosts = [children.enter_context(Child(host, journal, f"host-{number}")) for number in (1, 2)]
        producers = [children.enter_context(Child(produce, queue.pk, tenants, f"p-{number}")) for number in (1, 2)]
        wait_until(lambda: len(read(journal)) > 200)
        for partitions in (5, 2):
            resized(queue, partitions)
            done = len(read(journal))
            wait_until(lambda done=done: len(read(journal)) > done + 200)
        sent: dict[str, int] = {}
        for producer in producers:
            producer.say()
            sent |= producer.hear()
        wait_until(lambda: sum(map(len, firsts(read(journal)).values())) == sum(sent.values()))
        assert firsts(read(journal)) == {entity: list(range(count)) for entity, count in sent.items()}
        # Entities are few, and drawn at random: a partition may have none.
        used = {int(one.place) for one in read(journal)}
        assert used <= set(range(10))
        assert all(used & set(numbers) for numbers in (range(3), range(3, 8), range(8, 10)))
        for child in hosts:
            child.say()
            assert child.hear() == []


def resized(queue: Queue, partitions: int) -> None:
    """While messages wait in the former partitions, and come to the new ones: these are what tells."""
    queue.refresh_from_db()
    pause_queue(SYSTEM, queue, reason="so that something waits")
    wait_until(lambda: hosts_have_heard(queue))
    wait_until(lambda: messages_left(queue) > 100)
    operation = resize_queue(SYSTEM, queue, partitions=partitions)
    follow(operation, lambda: messages_in_new_partitions(queue) > 100)
    resume_queue(SYSTEM, queue)
    follow(operation, lambda: operation.state_choice.is_final)
    assert operation.state == OperationState.SUCCEEDED


def messages_in_new_partitions(queue: Queue) -> int:
    found = Queue.objects.get(pk=queue.pk)
    return messages_left(found, found.routed_numbers) if found.former_numbers else 0


def follow(operation: Operation, is_so) -> None:
    """Run it, as a worker would, until that is so."""

    def is_there() -> bool:
        if not is_so():
            run_to_end(operation)
        return is_so()

    wait_until(is_there, 90)
