"""Which tenants have queues of their own instead of a shared one: asked once, however many there are."""

import pytest

from queueapi.actions.actor import SYSTEM
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.models import IsolationRequest, Queue
from queueapi.selectors.isolation import isolated_from
from tests.console_pages import queries_of

pytestmark = pytest.mark.django_db


def queue(name: str, tenant=None) -> Queue:
    tenant = tenant or ensure_system_tenant()
    return Queue.objects.create(tenant=tenant, name=name, topic=name.lower(), handler="log")


def request(tenant, state: str, name: str = "main") -> None:
    IsolationRequest.objects.create(
        tenant=tenant, queues=[{"name": name}], state=state, reason="bursts", requested_by_name="eve",
        decided_by_name="ada", decided_at=tenant.created_at, error="no topics" if state == "failed" else "",
    )  # fmt: skip


def test_those_whose_isolation_was_carried_out(database) -> None:
    shared, other = queue("Main"), queue("Other")
    for name in ("Berlin", "Aachen"):
        tenant = create_tenant(SYSTEM, name=name)
        queue("MAIN", tenant)
        request(tenant, "failed")
        request(tenant, "active")
    by_hand, elsewhere = create_tenant(SYSTEM, name="By hand"), create_tenant(SYSTEM, name="Elsewhere")
    queue("Main", by_hand)
    request(by_hand, "refused")
    queue("Main", elsewhere)
    request(elsewhere, "active", "Other")
    assert isolated_from(shared) == ["Aachen", "Berlin"]
    assert isolated_from(other) == []
    assert queries_of(lambda: isolated_from(shared)) == 1
    assert isolated_from(Queue.objects.get(tenant=by_hand)) == [], "it is nobody's but its tenant's"
