"""Messages of several tenants under way, while one of them gets a queue of its own and returns: none is lost, and those
of each entity are handled in their order. Hosts and producers are processes of their own."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.db import connections

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.isolation import isolate_tenant, return_to_shared
from queueapi.actions.messages import publish_message
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.backlog import messages_left
from queueapi.choices import IsolationState, QueueState
from queueapi.models import IsolationRequest, Queue, Tenant
from queueapi.selectors.isolation import unheld
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.messages import Record
from queuecore.testing.waiting import wait_until
from tests.integration.conftest import installation  # noqa: F401 a fixture
from tests.integration.queue_kit import run_to_end
from tests.processes import Child
from workers.host import ConsumerHost

ENTITIES = 6
ROUNDS_S = 0.004

_journal: Path | None = None


@handler("test.isolation.order")
def write_down(record: Record, context: DeliveryContext) -> None:
    """One line, whole: what several processes append does not mix. A tenant's own queue waits at its gate."""
    assert _journal is not None
    if record.topic.split(".")[1] == "isolated":
        wait_until(lambda: not gate(_journal).exists())
    line = json.dumps([str(record.key), int(record.data), record.topic.split(".")[1]]) + "\n"
    with _journal.open("ab", buffering=0) as journal:
        journal.write(line.encode())


def gate(journal: Path) -> Path:
    """While it is there, nothing is handled in a tenant's own queue. (A pause would keep the tenant from returning.)"""
    return journal.with_suffix(".gate")


def host(parent: Connection, journal: Path, name: str) -> None:
    global _journal
    _journal = journal
    deaths: list[str] = []
    consumer_host = ConsumerHost(name, on_death=deaths.append)
    consumer_host.start()
    parent.recv()
    consumer_host.stop()
    parent.send(deaths)


def produce(parent: Connection, queue_id: UUID, tenants: list[UUID], name: str) -> None:
    """So many numbers for each of its entities, until it is told to stop; then how many that were."""
    queue, rows = Queue.objects.get(pk=queue_id), {tenant: Tenant.objects.get(pk=tenant) for tenant in tenants}
    entities = [(uuid4(), rows[tenants[place % len(tenants)]]) for place in range(ENTITIES)]
    sent = 0
    while not parent.poll():
        for entity, tenant in entities:
            publish_message(queue, tenant, entity, b"%d" % sent)
        sent += 1
        time.sleep(ROUNDS_S)
    runtime.close_provider()
    parent.send({str(entity): sent for entity, _ in entities})


@dataclass(frozen=True)
class Handled:
    entity: str
    number: int
    place: str


def read(journal: Path) -> list[Handled]:
    return [Handled(*json.loads(line)) for line in journal.read_text().splitlines()]


def firsts(handled: list[Handled]) -> dict[str, list[int]]:
    """Of each entity, the numbers in the order in which they were handled for the first time: a message may come again
    where its partition went to another host."""
    seen: dict[str, dict[int, None]] = {}
    for one in handled:
        seen.setdefault(one.entity, {}).setdefault(one.number)
    return {entity: list(numbers) for entity, numbers in seen.items()}


@pytest.fixture
def queue(installation) -> Queue:  # noqa: F811 the fixture
    told = {"name": "Flow", "topic": "flow", "handler": "test.isolation.order", "partitions": 3}
    return create_queue(SYSTEM, installation.queue.tenant, **told, submit_strategy="SEQUENTIAL_BY_ORIGINATOR")


def test_order_survives_isolation_and_return(installation, queue, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr("workers.operations.waiting._PATIENCE_S", 0.5)
    # What waits here would otherwise be waited for.
    monkeypatch.setattr("workers.operations.returning.SMALL_BACKLOG", 1_000_000)
    journal = tmp_path / "handled"
    journal.touch()
    tenants = [installation.tenant.pk, create_tenant(SYSTEM, "Foundry").pk]
    runtime.close_provider()
    connections.close_all()
    with ExitStack() as children:
        hosts = [children.enter_context(Child(host, journal, f"host-{number}")) for number in (1, 2)]
        producers = [children.enter_context(Child(produce, queue.pk, tenants, f"p-{number}")) for number in (1, 2)]
        wait_until(lambda: len(read(journal)) > 200)
        # What waits in the first place while the second one fills is what tells.
        pause_queue(SYSTEM, queue, tenant=installation.tenant, reason="so that something waits")
        wait_until(lambda: hosts_have_heard(queue))
        wait_until(lambda: messages_left(queue) > 100)
        request = isolate_tenant(SYSTEM, installation.tenant, [{"name": "Flow", "partitions": 2}], "noisy")
        follow(request, lambda: request.state == IsolationState.HANDING_OVER and messages_left(own_queue(request)) > 50)
        assert request.state == IsolationState.HANDING_OVER
        resume_queue(SYSTEM, queue, tenant=installation.tenant)
        follow(request, lambda: request.state == IsolationState.ACTIVE)
        moved, own = len(read(journal)), own_queue(request)
        wait_until(lambda: any(one.place == "isolated" for one in read(journal)[moved:]))
        gate(journal).touch()
        wait_until(lambda: messages_left(own) > 100)
        request = return_to_shared(SYSTEM, request)
        follow(request, lambda: own_queue(request).state == QueueState.DRAINING)
        returning = len(read(journal))
        wait_until(lambda: len(read(journal)) > returning + 100)
        assert messages_left(own) > 100
        gate(journal).unlink()
        follow(request, lambda: request.state == IsolationState.RETIRED)
        returned = len(read(journal))
        wait_until(lambda: len(read(journal)) > returned + 200)
        sent: dict[str, int] = {}
        for producer in producers:
            producer.say()
            sent |= producer.hear()
        expected = {entity: list(range(count)) for entity, count in sent.items()}
        wait_until(lambda: sum(map(len, firsts(read(journal)).values())) == sum(sent.values()))
        assert firsts(read(journal)) == expected
        for child in hosts:
            child.say()
            assert child.hear() == []


def hosts_have_heard(queue: Queue) -> bool:
    """Whether they consume it by its row as it is now."""
    return not unheld(queue, Queue.objects.get(pk=queue.pk).version)


def own_queue(request: IsolationRequest) -> Queue:
    return Queue.objects.get(tenant=request.tenant_id)


def follow(request: IsolationRequest, is_so: Callable[[], bool]) -> None:
    """Run its operation, as a worker would, until that is so."""

    def is_there() -> bool:
        request.refresh_from_db()
        if not is_so() and request.operation is not None:
            run_to_end(request.operation)
            request.refresh_from_db()
        return is_so()

    wait_until(is_there, 90)
