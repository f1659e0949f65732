"""Tenants that are isolated, and return, by processes that die of kill -9 at each step: it ends as if none had."""

from multiprocessing.connection import Connection
from typing import Any
from uuid import UUID

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.isolation import isolate_tenant, return_to_shared
from queueapi.choices import IsolationState, OperationState, QueueState
from queueapi.models import AuditEntry, IsolationRequest, Pause, Queue
from queuecore.providers.log.admin import LogAdmin
from tests.integration.conftest import installation  # noqa: F401 a fixture
from tests.integration.queue_kit import consume, fill, isolated, numbers_of, stored
from tests.kill_points import When, die_at
from tests.reliability.test_queue_life_crash import WHENS, die, finished
from workers.operations import deletion, emptying, isolation, returning, run, runner

MESSAGES = 20

ISOLATION: dict[str, tuple[Any, str]] = {
    "claim": (runner, "claim_operation"),
    "begin provisioning": (isolation, "begin_provisioning"),
    "create topics": (LogAdmin, "create_topics"),
    "change topics": (LogAdmin, "alter_topics"),
    "begin the handover": (isolation, "begin_handover"),
    "publish the routing": (emptying, "publish_routing"),
    "take the cut": (isolation, "record_cut"),
    "end the handover": (isolation, "end_handover"),
    "note": (run, "record_progress"),
    "end": (runner, "finish_operation"),
}
RETURN: dict[str, tuple[Any, str]] = {
    "claim": (runner, "claim_operation"),
    "hold": (returning, "hold_tenant"),
    "begin the return": (returning, "begin_return"),
    "publish the routing": (emptying, "publish_routing"),
    "end the return": (returning, "end_return"),
    "stop consuming": (deletion, "stop_consuming"),
    "remove topics": (LogAdmin, "delete_topics"),
    "remove the row": (deletion, "forget_queue"),
    "note": (run, "record_progress"),
    "end": (runner, "finish_operation"),
}


def run_and_die(parent: Connection, operation_id: UUID, point: tuple[Any, str], when: When) -> None:
    die_at(*point, when)
    runner.run_operation(operation_id)
    runtime.close_provider()
    parent.send("over")


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("point", ISOLATION)
def test_a_tenant_is_isolated_whoever_dies(installation, point: str, when: When) -> None:  # noqa: F811 the fixture
    tenant, shared = installation.tenant, installation.queue
    fill(shared, tenant, MESSAGES)
    consume(shared)
    request = isolate_tenant(SYSTEM, tenant, [{"name": shared.name, "partitions": 2}], "noisy")
    die(run_and_die, request.operation_id, ISOLATION[point], when)
    assert finished(request.operation).state == OperationState.SUCCEEDED
    request.refresh_from_db()
    own = Queue.objects.get(tenant=tenant)
    assert (request.state, own.state) == (IsolationState.ACTIVE, QueueState.ACTIVE)
    fill(shared, tenant, MESSAGES)
    assert stored(own) == numbers_of(MESSAGES)
    steps = AuditEntry.objects.filter(object_id=str(request.pk), action="step").values_list("after", flat=True)
    assert [step["state"] for step in steps.order_by("id")] == ["provisioning", "handing_over", "active"]


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("point", RETURN)
def test_a_tenant_returns_whoever_dies(installation, monkeypatch, point: str, when: When) -> None:  # noqa: F811
    tenant, shared = installation.tenant, installation.queue
    # As if hosts held the tenant back at once: that they are waited for is told elsewhere.
    monkeypatch.setattr(returning, "unheld", lambda *_: "")
    own = isolated(tenant, shared)
    fill(shared, tenant, MESSAGES)
    consume(own)
    request = return_to_shared(SYSTEM, IsolationRequest.objects.get())
    die(run_and_die, request.operation_id, RETURN[point], when)
    assert finished(request.operation).state == OperationState.SUCCEEDED
    request.refresh_from_db()
    assert (request.state, Pause.objects.count()) == (IsolationState.RETIRED, 0)
    assert not Queue.objects.filter(tenant=tenant).exists()
    assert not [name for name in runtime.provider().admin().topics() if ".isolated." in name]
    fill(shared, tenant, MESSAGES)
    assert stored(shared) == numbers_of(MESSAGES)
    assert AuditEntry.objects.filter(object_id=str(own.pk), action="remove").count() == 1
