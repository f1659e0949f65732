"""Tenants and tenant profiles over REST."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from queueapi import admission as process
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import change_tenant
from queueapi.admission import Admission
from queueapi.cluster.store import DatabaseStore
from queueapi.models import DEFAULT_PROFILE, AuditEntry, Queue, Tenant, TenantProfile
from queuecore.cluster.services import ServiceInfo
from queuecore.testing.clock import ManualClock

TENANTS, PROFILES = "/api/v1/tenants", "/api/v1/tenant-profiles"
MESSAGES = "/api/v1/queues/telemetry/messages"
MOST_QUERIES = 10


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


def names(answer) -> list[str]:
    return [row["name"] for row in answer.json()["results"]]


def test_a_tenants_life(api) -> None:
    made = api.post(TENANTS, {"name": "Acme", "messages_per_s": 7})
    assert made.status_code == 201
    assert (made.json()["profile"], made.json()["profile_name"]) == (str(DEFAULT_PROFILE), "default")
    url = f"{TENANTS}/{made.json()['id']}"
    changed = api.patch(url, {"description": "Contract 1", "messages_per_s": None})
    assert (changed.status_code, changed.json()["messages_per_s"]) == (200, None)
    suspended = api.post(f"{url}/suspend", {"reason": "unpaid"}).json()
    assert (suspended["state"], suspended["reason"]) == ("suspended", "unpaid")
    assert api.post(f"{url}/resume").json()["state"] == "active"
    assert api.delete(url).status_code == 204
    assert api.get(url).status_code == 404
    told = AuditEntry.objects.filter(object_id=made.json()["id"], actor_name="root").order_by("id")
    assert list(told.values_list("action", flat=True)) == ["create", "change", "suspend", "resume", "delete"]


def test_a_profiles_life(api) -> None:
    body = {"name": "small", "messages_per_s": 5, "submit_strategies": ["BURST"], "approves_isolation": True}
    made = api.post(PROFILES, body)
    assert made.status_code == 201
    assert {**made.json(), **body} == made.json()
    assert (made.json()["tenants"], made.json()["is_default"], made.json()["burst_s"]) == (0, False, 5)
    url = f"{PROFILES}/{made.json()['id']}"
    assert api.patch(url, {"label": "gold"}).json()["label"] == "gold"
    assert api.delete(url).status_code == 204
    assert api.get(url).status_code == 404


def change(what: str, before: Any, after: Any) -> dict[str, Any]:
    return {"what": what, "before": before, "after": after}


def test_each_write_can_be_planned_and_a_plan_changes_nothing(api, installation) -> None:
    tenant, before = installation.tenant, AuditEntry.objects.count()
    one, profile = f"{TENANTS}/{tenant.id}", f"{PROFILES}/{DEFAULT_PROFILE}"
    nothing = {"summary": "nothing would change", "changes": [], "warnings": [], "why_not": ""}
    plan = "?dry_run=true"
    created = api.post(TENANTS + plan, {"name": "Acme"}).json()
    assert (created["summary"], created["changes"][0]) == ("create tenant Acme", change("name", None, "Acme"))
    changed = api.patch(one + plan, {"messages_per_s": 5}).json()
    told = {"summary": "change tenant Greenhouse", "changes": [change("messages_per_s", None, 5)]}
    assert changed == {**nothing, **told}
    suspended = api.post(f"{one}/suspend{plan}", {"reason": "unpaid"}).json()
    assert suspended["changes"] == [change("state", "active", "suspended"), change("reason", "", "unpaid")]
    assert api.post(f"{one}/resume{plan}").json() == nothing
    assert change("name", "Greenhouse", None) in api.delete(one + plan).json()["changes"]
    assert change("name", None, "small") in api.post(PROFILES + plan, {"name": "small"}).json()["changes"]
    assert [each["after"] for each in api.patch(profile + plan, {"burst_s": 9}).json()["changes"]] == [9]
    assert "always there" in api.delete(profile + plan).json()["why_not"]
    assert AuditEntry.objects.count() == before
    assert (Tenant.objects.count(), TenantProfile.objects.count()) == (2, 1)


@pytest.mark.parametrize(
    ("url", "body", "told"),
    [
        (TENANTS, {"name": "greenhouse"}, "another tenant is called so"),
        (TENANTS, {"name": "Acme", "profile": str(uuid4())}, "does not exist"),
        (TENANTS, {"name": "Acme", "burst_s": 0}, "greater than or equal to 1"),
        (TENANTS, {"name": "Acme", "mesages_per_s": 1}, "did you mean messages_per_s?"),
        (TENANTS, {"name": "Acme", "state": "suspended"}, "no field 'state' that may be entered"),
        (TENANTS, {}, "required"),
        (PROFILES, {"name": "Default"}, "another profile is called so"),
        (PROFILES, {"name": "x", "submit_strategies": ["ALL"]}, "not a valid choice"),
        (PROFILES, {"name": "x", "min_retention_ms": 2, "max_retention_ms": 1}, "use no less than min_retention_ms"),
    ],
)
def test_what_cannot_be_created_is_refused_with_what_to_enter(api, url, body, told) -> None:
    for query in ("", "?dry_run=true"):
        answer = api.post(url + query, body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
        assert told in answer.content.decode()


def test_what_is_in_use_is_not_deleted(api, installation) -> None:
    create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="log")
    for url in (f"{TENANTS}/{installation.tenant.id}", f"{PROFILES}/{DEFAULT_PROFILE}"):
        answer = api.delete(url)
        assert (answer.status_code, answer.json()["code"]) == (409, "not_changeable")
    assert Queue.objects.filter(name="Own").exists()


def test_past_its_quota_a_tenant_gets_429_and_when_to_come_again(api, installation, monkeypatch) -> None:
    clock = ManualClock()
    monkeypatch.setattr(process, "_process", Admission(clock))
    change_tenant(SYSTEM, installation.tenant, bytes_per_s=1, burst_s=10)
    message = {"tenant": str(installation.tenant.id), "entity": str(uuid4()), "payload": "12345"}
    assert api.post(MESSAGES, message).status_code == 201
    refused = api.post(MESSAGES, message)
    assert (refused.status_code, refused["Retry-After"]) == (429, "4")
    problem = refused.json()
    assert (problem["code"], problem["retryable"]) == ("queue_overloaded", True)
    assert "quota bytes_per_s of 1 allows; try again in 4.0 s" in problem["detail"]
    clock.advance(4)
    assert api.post(MESSAGES, message).status_code == 201
    used = api.get(f"{TENANTS}/{installation.tenant.id}").json()["published_here"]
    assert (used["messages"], used["bytes"], used["refused"]) == (2, 14, 1)


def test_a_suspended_tenant_is_told_why(api, installation) -> None:
    api.post(f"{TENANTS}/{installation.tenant.id}/suspend", {"reason": "invoice 4711 is unpaid"})
    message = {"tenant": str(installation.tenant.id), "entity": str(uuid4()), "payload": 1}
    refused = api.post(MESSAGES, message)
    assert (refused.status_code, refused.json()["code"]) == (409, "tenant_suspended")
    assert "invoice 4711 is unpaid" in refused.json()["detail"]
    api.post(f"{TENANTS}/{installation.tenant.id}/resume")
    assert api.post(MESSAGES, message).status_code == 201


def test_one_tenant_says_where_each_quota_comes_from(api, installation) -> None:
    TenantProfile.objects.update(messages_per_s=5, partitions=10)
    change_tenant(SYSTEM, installation.tenant, messages_per_s=9)
    shown = api.get(f"{TENANTS}/{installation.tenant.id}").json()["quotas"]
    assert {row["name"]: (row["value"], row["is_own"]) for row in shown} == {
        "messages_per_s": (9, True),
        "bytes_per_s": (None, False),
        "burst_s": (5, False),
        "partitions": (10, False),
        "stored_bytes": (None, False),
    }


def test_a_profile_names_the_services_that_are_dedicated_to_it(api) -> None:
    for service, whose in (("gold-1", {str(DEFAULT_PROFILE)}), ("gold-2", {str(uuid4())}), ("common", set())):
        info = ServiceInfo(service, dedicated_to=frozenset(whose))
        DatabaseStore().join(info, host="localhost", pid=1, lease_s=10)
    assert api.get(f"{PROFILES}/{DEFAULT_PROFILE}").json()["dedicated_services"] == ["gold-1"]


def test_tenants_are_narrowed_down_and_come_in_pages(database, api) -> None:
    small = TenantProfile.objects.create(name="small", description="for trials")
    for name, state, reason in (("Acme", "active", ""), ("Bolt", "suspended", "unpaid"), ("Cogs", "active", "")):
        Tenant.objects.create(name=name, profile=small, state=state, reason=reason, description=f"makes {name}")
    assert names(api.get(TENANTS, {"profile": str(small.id)})) == ["Acme", "Bolt", "Cogs"]
    assert names(api.get(TENANTS, {"state": "suspended"})) == ["Bolt"]
    assert names(api.get(TENANTS, {"text": "MAKES co"})) == ["Cogs"]
    assert names(api.get(PROFILES, {"text": "trial"})) == ["small"]
    assert api.get(TENANTS, {"state": "asleep"}).status_code == 400
    assert api.get(TENANTS, {"profile": str(uuid4())}).status_code == 400
    first = api.get(TENANTS, {"page_size": 2, "profile": str(small.id)})
    assert names(first) == ["Acme", "Bolt"]
    assert names(api.get(first.json()["next"])) == ["Cogs"]


@pytest.mark.parametrize("url", [TENANTS, PROFILES])
def test_lists_ask_the_database_as_often_for_many_rows_as_for_few(api, url) -> None:
    # Who asks is looked up once.
    api.get(url)
    asked = []
    for rows in (2, 30):
        for _ in range(rows):
            profile = TenantProfile.objects.create(name=f"profile {uuid4()}")
            tenant = Tenant.objects.create(name=f"tenant {uuid4()}", profile=profile)
            Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log")
        with CaptureQueriesContext(connection) as queries:
            answer = api.get(url, {"page_size": 100})
        asked.append(len(queries.captured_queries))
        assert {row.get("queues", row.get("tenants")) for row in answer.json()["results"]} >= {1}
    assert asked[0] == asked[1] <= MOST_QUERIES


@pytest.mark.parametrize("url", [TENANTS, PROFILES])
def test_strangers_see_nothing(api, url) -> None:
    assert APIClient().get(url).status_code == 401
    assert APIClient().post(url, {"name": "x"}).status_code == 401


def test_the_schema_tells_of_plans_and_refusals(api) -> None:
    schema = api.get("/api/v1/schema", HTTP_ACCEPT="application/vnd.oai.openapi+json").json()
    for path in ("/api/v1/tenants", "/api/v1/tenant-profiles"):
        assert schema["paths"][path]["post"]["summary"].startswith("Create a tenant")
        assert "dry_run" in [one["name"] for one in schema["paths"][path]["post"]["parameters"]]
        assert "409" in schema["paths"][path + "/{id}"]["delete"]["responses"]
    assert {"409", "429"} <= schema["paths"]["/api/v1/queues/{queue}/messages"]["post"]["responses"].keys()
