"""The console for each role: who works there, who looks, and who sees what is their tenant's."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from queueapi.actions.tenants import ensure_system_tenant
from queueapi.choices import OperationState, Role
from queueapi.models import Operation, Queue, Tenant
from tests.letters import make_letter
from tests.people import person

pytestmark = pytest.mark.django_db

PAGES = (
    *("overview", "queues", "dead_letters", "pending_requests", "operations", "services", "partitions", "rebalances"),
    *(
        "audit",
        "alerts",
        "alert_rules",
        "alert_channels",
        "silences",
        "tokens",
        "tenants",
        "isolation_requests",
        "usage",
    ),
)
OF_TENANTS = ("overview", "alerts", "queues", "dead_letters", "operations", "isolation_requests", "usage")
OF_THEIR_ADMINS = (*OF_TENANTS, "audit", "tokens")


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")


def signed_in(client: Client, role: Role) -> Client:
    tenant = Tenant.objects.create(name="Greenhouse") if role.is_of_tenant else None
    client.force_login(person("ada", role, tenant))
    return client


def pause(client: Client, queue: Queue) -> Any:
    return client.post(reverse("pause_queue", args=[queue.pk]), {"what": "", "reason": "x", "confirm": "yes"})


@pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.OPERATOR])
def test_administrators_and_operators_work(client, queue, role) -> None:
    signed_in(client, role)
    for name in PAGES:
        assert client.get(reverse(name)).status_code == 200, name
    assert pause(client, queue).status_code == 302
    assert queue.pauses.count() == 1


def test_auditors_look_and_change_nothing(client, queue) -> None:
    signed_in(client, Role.AUDITOR)
    for name in PAGES:
        page = client.get(reverse(name))
        assert page.status_code == 200, name
        assert "you see everything, and change nothing" in page.content.decode()
    operation = Operation.objects.create(kind="x", summary="x", total=1, state=OperationState.RUNNING)
    refused = [
        pause(client, queue),
        client.post(reverse("queue_messages", args=[queue.pk]), {}),
        client.post(reverse("cancel_operation", args=[operation.pk])),
        client.post(reverse("replay_letters"), {}),
    ]
    assert [answer.status_code for answer in refused] == [403] * 4
    assert "Your role may not do that" in refused[0].content.decode()
    assert "auditor, and that role may not operate queues" in refused[0].content.decode()
    operation.refresh_from_db()
    assert (queue.pauses.count(), operation.state) == (0, OperationState.RUNNING)


def test_auditors_read_why_they_choose_no_letters(client, queue) -> None:
    make_letter(queue)
    signed_in(client, Role.AUDITOR)
    shown = client.get(reverse("dead_letters"), {"state": "open"}).content.decode()
    assert "auditor, which may not operate dead letters" in shown
    assert not any(offered in shown for offered in ("Replay selected", "Replay all", "Discard all", 'name="letter"'))
    client.force_login(person("olga", Role.OPERATOR))
    shown = client.get(reverse("dead_letters"), {"state": "open"}).content.decode()
    assert all(offered in shown for offered in ("Replay selected", "Replay all", "Discard all", 'name="letter"'))


@pytest.mark.parametrize(("role", "theirs"), [(Role.TENANT_ADMIN, OF_THEIR_ADMINS), (Role.TENANT_VIEWER, OF_TENANTS)])
def test_tenants_people_have_their_pages_and_no_others(client, role, theirs) -> None:
    signed_in(client, role)
    for name in PAGES:
        assert client.get(reverse(name)).status_code == (200 if name in theirs else 403), name
    assert client.get("/api/v1/queues").status_code == 200
