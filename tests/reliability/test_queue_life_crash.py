"""Queues that are created, moved and deleted by processes that die of kill -9 at each step: it ends as if none had."""

import signal
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from queueapi import runtime
from queueapi.actions import operations, provisioning, queue_ends
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queue_ends import delete_queue
from queueapi.choices import OperationState, QueueState
from queueapi.models import AuditEntry, Operation, Queue
from queuecore.providers.log.admin import LogAdmin
from queuecore.providers.log.transactions import LogTransaction
from queuecore.testing.waiting import wait_until
from tests.integration.conftest import installation  # noqa: F401 a fixture
from tests.integration.queue_kit import fill, new_queue, numbers_of, stored
from tests.kill_points import PLACES, When, die_at
from tests.processes import Child
from workers.operations import deletion, emptying, moving, run, runner

MESSAGES = 50
CHUNK = 4

CREATION: dict[str, tuple[Any, str]] = {
    "start the operation": (provisioning, "record_operation"),
    "claim": (provisioning, "claim_operation"),
    "create topics": (LogAdmin, "create_topics"),
    "change topics": (LogAdmin, "alter_topics"),
    "note": (provisioning, "record_progress"),
    "tell producers": (provisioning, "tell_producers"),
    "end": (provisioning, "finish_operation"),
}
DELETION: dict[str, tuple[Any, str]] = {
    "claim": (runner, "claim_operation"),
    "publish the routing": (emptying, "publish_routing"),
    "stop consuming": (deletion, "stop_consuming"),
    "wait for consumers": (deletion, "_await_consumers"),
    "send a chunk": (LogTransaction, "send"),
    "commit offsets": (LogTransaction, "commit_offsets"),
    "begin a transaction": PLACES["begin a transaction"],
    "finish a transaction": PLACES["finish a transaction"],
    "note": (run, "record_progress"),
    "remove topics": (LogAdmin, "delete_topics"),
    "remove letters": (queue_ends, "remove_letters_of"),
    "remove the row": (deletion, "forget_queue"),
    "end": (runner, "finish_operation"),
}
# What happens more than once, and is let happen before.
REPEATED = ("send a chunk", "commit offsets", "note")
WHENS: list[When] = ["before", "after"]


def create_and_die(parent: Connection, tenant_id: UUID, point: str, when: When) -> None:
    die_at(*CREATION[point], when)
    new_queue(Queue.objects.filter(tenant=tenant_id).first().tenant, "Orders")
    parent.send("over")


def run_and_die(parent: Connection, operation_id: UUID, point: str, when: When, nth: int) -> None:
    die_at(*DELETION[point], when, nth)
    runner.run_operation(operation_id)
    runtime.close_provider()
    parent.send("over")


def die(work: Any, *args: Any) -> None:
    """Nothing may be open where a process is forked."""
    runtime.close_provider()
    connections.close_all()
    with Child(work, *args) as child:
        said = child.hear_all()
        child.join()
        assert said == []
        assert child.process.exitcode == -signal.SIGKILL


def finished(operation: Operation) -> Operation:
    """As the sweeper has workers do it, once whoever had the operation is known to be dead: as often as it takes, since
    a consumer that died is a member of its group for a while."""
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)

    def is_over() -> bool:
        operation.refresh_from_db()
        if not operation.state_choice.is_final:
            Operation.objects.filter(pk=operation.pk, lease_expires_at__isnull=False).update(lease_expires_at=long_ago)
            Operation.objects.filter(pk=operation.pk).update(woken_at=long_ago, due_at=None)
            assert operations.wake_stale_operations() == 1
            runner.run_operation(operation.pk)
        return operation.state_choice.is_final

    wait_until(is_over, 60)
    return operation


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("point", CREATION)
def test_a_queue_is_created_whoever_dies(installation, point: str, when: When) -> None:  # noqa: F811 the fixture
    tenant = installation.queue.tenant
    die(create_and_die, tenant.pk, point, when)
    if point == "start the operation":
        assert not Queue.objects.filter(name="Orders").exists(), "nothing was committed"
        return
    queue = Queue.objects.select_related("operation").get(name="Orders")
    assert finished(queue.operation).state == OperationState.SUCCEEDED
    queue.refresh_from_db()
    assert queue.state == QueueState.ACTIVE
    fill(queue, installation.tenant, 10)
    assert stored(queue) == numbers_of(10)


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("point", DELETION)
def test_a_queue_is_moved_and_deleted_whoever_dies(installation, monkeypatch, point: str, when: When) -> None:  # noqa: F811
    monkeypatch.setattr(moving, "CHUNK", CHUNK)
    queue, target = new_queue(installation.queue.tenant, "Old"), installation.queue
    fill(queue, installation.tenant, MESSAGES)
    operation = delete_queue(SYSTEM, queue, move_to=target)
    die(run_and_die, operation.pk, point, when, 3 if point in REPEATED else 1)
    assert finished(operation).state == OperationState.SUCCEEDED
    assert stored(target) == numbers_of(MESSAGES)
    assert not Queue.objects.filter(pk=queue.pk).exists()
    admin = runtime.provider().admin()
    assert not [name for name in admin.topics() if name.startswith("old")]
    assert not [name for name in admin.groups() if "_old-" in name]
    assert AuditEntry.objects.filter(object_id=str(queue.pk), action="remove").count() == 1
