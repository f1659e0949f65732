"""Isolation over REST, as a tenant's people, administrators and automation use it."""

import pytest

from queueapi.actions.actor import SYSTEM
from queueapi.actions.tenants import create_tenant
from queueapi.choices import IsolationState, Role
from queueapi.cluster.store import DatabaseStore
from queueapi.models import IsolationRequest, Queue
from tests.integration.queue_kit import run_until_final, run_until_told
from tests.people import api_of, person
from workers.operations import isolation as running
from workers.operations import waiting

REQUESTS = "/api/v1/isolation-requests"
ASKED = {"queues": [{"name": "telemetry", "partitions": 2, "submit_strategy": "SEQUENTIAL"}], "reason": "bursts"}


@pytest.fixture
def tenants_api(installation):
    return api_of(person("eve", Role.TENANT_ADMIN, installation.tenant))


@pytest.fixture
def ada():
    return api_of(person("ada", Role.ADMINISTRATOR))


def test_from_the_request_to_the_first_message_and_back(installation, tenants_api, ada) -> None:
    made = tenants_api.post(REQUESTS, ASKED, format="json")
    assert (made.status_code, made.json()["state"]) == (201, "requested")
    url = f"{REQUESTS}/{made.json()['id']}"
    assert tenants_api.post(f"{url}/approve", {}, format="json").status_code == 403
    plan = ada.post(f"{url}/approve?dry_run=true", {}, format="json").json()
    created = {change["what"]: change["after"] for change in plan["changes"]}
    topics = [f"telemetry.isolated.{installation.tenant.id}.{number}" for number in range(2)]
    assert topics in created.values()
    assert ada.get(url).json()["state"] == "requested"
    answer = ada.post(f"{url}/approve", {"comment": "fine"}, format="json")
    assert (answer.status_code, answer.json()["state"], answer.json()["waits_for"]) == (
        200,
        "approved",
        "a worker, to begin",
    )
    run_until_final(IsolationRequest.objects.get().operation)
    seen = tenants_api.get(url).json()
    assert (seen["state"], seen["waits_for"], seen["decided_by_name"]) == ("active", "", "ada")
    assert tenants_api.get(f"/api/v1/operations/{seen['operation']}").json()["state"] == "succeeded"
    own = Queue.objects.get(tenant=installation.tenant)
    assert (own.name, own.partitions, own.submit_strategy) == ("Telemetry", 2, "SEQUENTIAL")
    retired = ada.post(f"{url}/retire", {}, format="json")
    assert (retired.status_code, retired.json()["state"]) == (200, "retiring")


def test_automation_isolates_with_one_call(installation, ada) -> None:
    answer = ada.post(f"/api/v1/tenants/{installation.tenant.id}/isolate", ASKED, format="json")
    assert (answer.status_code, answer.json()["state"]) == (202, "approved")
    assert answer.json()["decision"] == "by an administrator's own word"
    run_until_final(IsolationRequest.objects.get().operation)
    assert IsolationRequest.objects.get().state == IsolationState.ACTIVE


def test_requests_are_listed_by_state_and_tenant_and_only_to_whom_they_concern(installation, tenants_api, ada) -> None:
    other = create_tenant(SYSTEM, "Foundry")
    tenants_api.post(REQUESTS, ASKED, format="json")
    ada.post(REQUESTS, ASKED | {"tenant": str(other.id)}, format="json")
    assert len(ada.get(REQUESTS).json()["results"]) == 2
    assert [one["tenant_name"] for one in tenants_api.get(REQUESTS).json()["results"]] == ["Greenhouse"]
    assert len(ada.get(REQUESTS, {"tenant": str(other.id)}).json()["results"]) == 1
    assert ada.get(REQUESTS, {"state": "active"}).json()["results"] == []


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"queues": [], "reason": "x"}, "queues"),
        ({"queues": [{"name": "telemetry", "partitons": 2}], "reason": "x"}, "queues"),
        ({"queues": [{"name": "telemetry", "partitions": 0}], "reason": "x"}, "queues"),
        ({"queues": [{"name": "telemetry"}]}, "reason"),
        ({"queues": [{"name": "telemetry"}], "reason": "x", "approve": True}, "approve"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_by_its_field(tenants_api, asked, field) -> None:
    answer = tenants_api.post(REQUESTS, asked, format="json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input"), answer.json()
    assert field in str(answer.json())
    assert not IsolationRequest.objects.exists()


def test_another_tenant_is_as_one_that_is_not_there(installation, tenants_api) -> None:
    other = create_tenant(SYSTEM, "Foundry")
    answer = tenants_api.post(REQUESTS, ASKED | {"tenant": str(other.id)}, format="json")
    assert answer.status_code == 400
    assert f"there is no tenant {other.id}" in str(answer.json())


def test_a_tenants_people_are_told_in_plain_words_and_staff_the_details(
    installation, tenants_api, ada, monkeypatch
) -> None:
    monkeypatch.setattr(waiting, "_PATIENCE_S", 0)
    tenants_api.post(REQUESTS, ASKED, format="json")
    request = IsolationRequest.objects.get()
    url = f"{REQUESTS}/{request.pk}"
    ada.post(f"{url}/approve", {}, format="json")
    request.refresh_from_db()
    store = DatabaseStore()
    store.acknowledge("gateway-7", 0, 60)
    store.close()
    run_until_told(request.operation, "waits until gateway-7 has heard where the tenant's messages go now")
    assert "gateway-7" in ada.get(url).json()["waits_for"]
    for seen in (tenants_api.get(url).json(), tenants_api.get(REQUESTS).json()["results"][0]):
        assert seen["waits_for"] == "whoever sends, to hear where its messages go now"
    monkeypatch.setattr(running, "await_producers", lambda *_, **__: 1 // 0)
    run_until_final(request.operation)
    assert "ZeroDivisionError" in ada.get(url).json()["error"]
    operation = f"/api/v1/operations/{request.operation_id}"
    assert "ZeroDivisionError" in ada.get(operation).json()["error"]
    plain = "it could not go on; administrators see why, and can have it tried again"
    assert (tenants_api.get(url).json()["error"], tenants_api.get(operation).json()["error"]) == (plain, plain)
    ada.post(f"{url}/retry")
    told = tenants_api.get("/api/v1/audit").json()["results"]
    assert "retry" in [entry["action"] for entry in told]
    assert "ZeroDivisionError" not in str(told)


def test_one_that_was_cancelled_says_so(installation, tenants_api, ada) -> None:
    made = ada.post(f"/api/v1/tenants/{installation.tenant.id}/isolate", ASKED, format="json").json()
    ada.post(f"/api/v1/operations/{made['operation']}/cancel")
    run_until_final(IsolationRequest.objects.get().operation)
    url = f"{REQUESTS}/{made['id']}"
    told = ada.get(url).json()
    assert (told["state"], told["is_cancelled"], told["error"]) == ("failed", True, "cancelled after 0 of 5")
    told = tenants_api.get(url).json()
    assert (told["is_cancelled"], told["error"]) == (True, "it was cancelled; administrators can have it tried again")
    retried = ada.post(f"{url}/retry").json()
    assert (retried["state"], retried["is_cancelled"], retried["error"]) == ("approved", False, "")
