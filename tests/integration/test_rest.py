"""The REST interface, as automation sees it."""

import base64
import json
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.operations import finish_operation
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.choices import OperationState
from queueapi.models import Operation
from queuecore.errors import ProviderUnavailable
from queuecore.hashing import partition_of

URL = "/api/v1/queues/telemetry/messages"


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


@pytest.fixture
def message(installation) -> dict:
    return {"tenant": str(installation.tenant.id), "entity": str(uuid4()), "payload": {"temperature": 21}}


def test_publishing_answers_where_the_message_is(api, installation, message) -> None:
    answer = api.post(URL, message)
    assert answer.status_code == 201
    partition = answer.json()["partition"]
    assert partition == partition_of(UUID(message["entity"]), 3)
    place = installation.queue.partition_info(partition).place
    [record] = runtime.provider().reader().read(place, answer.json()["offset"], 10)
    assert record.data == b'{"temperature":21}', "as it was sent"
    assert str(record.key) == message["entity"]
    assert record.headers["tenantId"].decode() == message["tenant"]


def test_raw_bytes_are_stored_as_they_are(api, installation, message) -> None:
    raw = bytes(range(256))
    del message["payload"]
    answer = api.post(URL, {**message, "payload_base64": base64.b64encode(raw).decode()})
    place = installation.queue.partition_info(answer.json()["partition"]).place
    assert runtime.provider().reader().read(place, 0, 1)[0].data == raw


@pytest.mark.parametrize("named", ["TELEMETRY", "id"])
def test_a_queue_is_found_by_name_or_id(api, installation, message, named) -> None:
    queue = installation.queue.id if named == "id" else named
    assert api.post(f"/api/v1/queues/{queue}/messages", message).status_code == 201


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"entity": "sensor-1"}, "entity"),
        ({"tenant": str(uuid4())}, "tenant"),
        ({"payload_base64": "AA=="}, "non_field_errors"),
        ({"payload": None, "payload_base64": "AA=="}, "non_field_errors"),
    ],
)
def test_what_cannot_be_used_is_named(api, message, change, field) -> None:
    answer = api.post(URL, {**message, **change})
    assert answer.status_code == 400
    assert answer["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "invalid_input"
    assert field in answer.json()["errors"]


def test_bad_base64_and_missing_payload(api, message) -> None:
    del message["payload"]
    assert "non_field_errors" in api.post(URL, message).json()["errors"]
    for wrong in ("%", "ä"):
        answer = api.post(URL, {**message, "payload_base64": wrong})
        assert answer.status_code == 400
        assert "payload_base64" in answer.json()["errors"]


def test_an_unknown_queue_is_a_problem_with_a_code(api, message) -> None:
    answer = api.post("/api/v1/queues/nowhere/messages", message)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_message_too_large_for_the_topic(api, message) -> None:
    answer = api.post(URL, {**message, "payload": "x" * 1_100_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")


def test_a_body_too_large_to_be_read(api, message) -> None:
    answer = api.post(URL, {**message, "payload": "x" * 3_000_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")


def test_malformed_json(api) -> None:
    answer = api.post(URL, b"{", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")


def test_json_too_deep_to_be_read(api) -> None:
    answer = api.post(URL, b"[" * 100_000 + b"]" * 100_000, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")
    assert "nested too deeply" in answer.json()["detail"]


def test_json_that_can_be_read_but_hardly_written(api, message) -> None:
    """Somewhere here reading still succeeds, and only writing what was read is too deep."""
    for depth in range(700, 1000, 4):
        body = json.dumps({**message, "payload": "here"}).replace('"here"', "[" * depth + "]" * depth)
        assert api.post(URL, body, content_type="application/json").status_code in (201, 400)


@pytest.mark.parametrize("path", ["queues/%00", "services/%00", "queues/a%00b"])
def test_nul_in_a_path_is_not_found_and_no_database_is_asked(api, path) -> None:
    with CaptureQueriesContext(connection) as asked:
        answer = api.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert not asked.captured_queries


def test_what_nobody_foresaw_is_told_to_the_log_alone(api, message, monkeypatch, caplog) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("the password is 1234")

    monkeypatch.setattr("queueapi.rest.v1.queues.publish_message", broken)
    answer = api.post(URL, message)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert answer["content-type"] == "application/problem+json"
    assert "1234" not in answer.content.decode()
    assert "RuntimeError: the password is 1234" in caplog.text
    assert f"POST '{URL}' failed" in caplog.text


def test_a_tenants_queue_takes_that_tenants_messages_only(api, installation, message) -> None:
    own = create_queue(SYSTEM, create_tenant(SYSTEM, "Owner"), name="Own", topic="own", handler="log")
    answer = api.post(f"/api/v1/queues/{own.id}/messages", message)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert str(own.tenant_id) in answer.json()["detail"]


def test_a_provider_that_is_away_is_503_and_worth_retrying(api, message, monkeypatch) -> None:
    def away(*args: object) -> None:
        raise ProviderUnavailable("the log's disk is full; free some space")

    monkeypatch.setattr("queueapi.queue_addresses.send", away)
    answer = api.post(URL, message)
    assert (answer.status_code, answer.json()["retryable"]) == (503, True)
    assert "free some space" in answer.json()["detail"]


def test_nobody_gets_in_without_a_name(installation, message) -> None:
    answer = APIClient().post(URL, message)
    assert answer.status_code == 401
    assert answer["www-authenticate"].startswith("Basic ")
    assert answer["content-type"] == "application/problem+json"


def test_the_console_never_asks_for_a_basic_password(installation, client) -> None:
    for headers in ({}, {"HX-Request": "true"}):
        answer = client.get("/", headers=headers)
        assert answer.status_code != 401
        assert "www-authenticate" not in answer


def test_a_session_is_enough_and_needs_its_token_to_change_anything(installation, message) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root", password="secret"))
    assert client.get("/api/v1/queues").status_code == 200
    assert client.post(URL, message).status_code == 403


def test_people_without_rights_are_refused(installation, message) -> None:
    client = APIClient()
    client.force_authenticate(User.objects.create_user("guest", password="secret"))
    assert client.post(URL, message).status_code == 403


@pytest.mark.parametrize("path", ["tenants", "queues", "dead-letters", "operations", "lag", "services", "schema"])
def test_lists_answer(api, path) -> None:
    assert api.get(f"/api/v1/{path}").status_code == 200


def test_cancelling_over_rest(api) -> None:
    operation = Operation.objects.create(kind="count", summary="Count", total=1)
    answer = api.post(f"/api/v1/operations/{operation.id}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelling")
    operation.refresh_from_db()
    finish_operation(operation, OperationState.CANCELLED)
    again = api.post(f"/api/v1/operations/{operation.id}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "already_final")


def test_health_needs_no_name(installation, client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
