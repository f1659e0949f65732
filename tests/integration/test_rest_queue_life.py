"""The life of a queue over REST: its state, its plans, 202 with the operation, and 409 with the reason."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from queueapi import backlog, runtime
from queueapi.choices import OperationState
from queueapi.models import Operation
from queuecore.errors import ProviderUnavailable
from tests.integration.queue_kit import fill, new_queue, run_to_end, run_until_final
from tests.integration.replay_kit import make_letters

QUEUES = "/api/v1/queues"
URL = f"{QUEUES}/telemetry"


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


def message(installation) -> dict[str, object]:
    return {"tenant": str(installation.tenant.id), "entity": str(uuid4()), "payload": 1}


def test_a_queue_shows_its_state_and_all_of_its_configuration(api) -> None:
    shown = api.get(URL).json()
    assert (shown["state"], shown["successor"], shown["hash_function"]) == ("active", None, "murmur3_128")
    assert (shown["retention_ms"], shown["retention_bytes"], shown["segment_bytes"]) == (604_800_000, -1, 52_428_800)
    assert (shown["replication_factor"], shown["custom_properties"], shown["max_backlog"]) == (None, {}, 0)
    assert [one["name"] for one in api.get(QUEUES, {"state": "active"}).json()["results"]] == ["Telemetry"]
    assert api.get(QUEUES, {"state": "draining"}).json()["results"] == []


def test_what_a_provider_takes_long_for_is_answered_with_the_operation(api, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise ProviderUnavailable("the provider is away")

    with monkeypatch.context() as away:
        away.setattr("queueapi.actions.provisioning.provision_queue", fail)
        made = api.post(QUEUES, {"name": "Orders", "topic": "orders", "handler": "log"})
        changed = api.patch(URL, {"retention_ms": 1000})
    assert [made.status_code, changed.status_code] == [202, 202]
    assert (made.json()["kind"], api.get(f"{QUEUES}/orders").json()["state"]) == ("provision_queue", "creating")
    for answer in (made, changed):
        assert run_to_end(Operation.objects.get(pk=answer.json()["id"])).state == OperationState.SUCCEEDED
    assert api.get(f"{QUEUES}/orders").json()["state"] == "active"
    assert runtime.provider().admin().topics()["telemetry.0"].retention_ms == 1000


def test_retention_is_changed_at_once_where_the_provider_is_there(api) -> None:
    assert api.patch(URL, {"retention_ms": 5000}).status_code == 200
    assert runtime.provider().admin().topics()["telemetry.1"].retention_ms == 5000


def test_no_more_is_taken_than_may_wait(api, installation, monkeypatch) -> None:
    monkeypatch.setattr(backlog, "_KNOWN_FOR_S", 0)
    api.patch(URL, {"max_backlog": 1})
    assert api.post(f"{URL}/messages", message(installation)).status_code == 201
    refused = api.post(f"{URL}/messages", message(installation))
    assert (refused.status_code, refused.json()["code"], refused.json()["retryable"]) == (429, "queue_overloaded", True)


def test_draining_is_planned_done_and_taken_back(api, installation) -> None:
    fill(installation.queue, installation.tenant, 2)
    plan = api.post(f"{URL}/drain?dry_run=true", {}).json()
    assert (plan["messages"], plan["why_not"], plan["topics"]) == (2, [], [])
    assert "nobody consumes it now" in plan["warnings"][0]
    assert api.get(URL).json()["state"] == "active"
    answer = api.post(f"{URL}/drain", {})
    assert (answer.status_code, answer.json()["kind"], answer.json()["total"]) == (202, "drain_queue", 2)
    assert api.get(URL).json()["operation"] == answer.json()["id"]
    refused = api.post(f"{URL}/messages", message(installation))
    assert (refused.status_code, refused.json()["code"]) == (409, "queue_not_active")
    assert api.post(f"{URL}/drain", {}).status_code == 409
    assert api.post(f"{URL}/activate").json()["state"] == "active"
    assert api.post(f"{URL}/messages", message(installation)).status_code == 201


def test_what_is_published_goes_to_the_named_queue(api, installation) -> None:
    new_queue(installation.queue.tenant, "Other")
    assert api.post(f"{URL}/drain", {"to": "other"}).status_code == 202
    assert api.post(f"{URL}/messages", message(installation)).json()["topic"].startswith("other.")
    assert "there is no queue 'nobody'" in str(api.post(f"{URL}/drain", {"to": "nobody"}).json()["errors"])


@pytest.mark.parametrize("by_query", [True, False])
def test_deleting_is_planned_refused_and_done(api, installation, by_query) -> None:
    new_queue(installation.queue.tenant, "Other")
    make_letters(installation.queue, 2)
    plan = api.delete(f"{URL}?dry_run=true").json()
    assert (plan["letters"], "telemetry.0" in plan["topics"], len(plan["groups"])) == (2, True, 4)
    refused = api.delete(URL)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_removable")
    assert "2 of its dead letters are open" in refused.json()["detail"]
    if by_query:
        answer = api.delete(f"{URL}?move_to=other&discard_letters=true")
    else:
        answer = api.delete(URL, {"move_to": "other", "discard_letters": True})
    assert (answer.status_code, answer.json()["kind"]) == (202, "delete_queue")
    run_to_end(Operation.objects.get(pk=answer.json()["id"]))
    assert api.get(URL).status_code == 404
    assert api.delete(URL).status_code == 404


def test_a_queue_is_resized(api, installation) -> None:
    planned = api.post(f"{URL}/resize?dry_run=true", {"partitions": 2})
    assert planned.json()["summary"] == "queue Telemetry would be resized to 2 partitions, 3 to 4"
    assert planned.json()["created"] == ["telemetry.3", "telemetry.4"]
    assert api.get(URL).json()["partitions"] == 3
    answer = api.post(f"{URL}/resize", {"partitions": 2})
    assert (answer.status_code, answer.json()["kind"]) == (202, "resize_queue")
    again = api.post(f"{URL}/resize", {"partitions": 4})
    assert (again.status_code, again.json()["code"]) == (409, "not_changeable")
    run_until_final(Operation.objects.get(pk=answer.json()["id"]))
    shown = api.get(URL).json()
    assert [shown[name] for name in ("partitions", "first_partition", "former_first")] == [2, 3, None]
    assert api.post(f"{URL}/messages", message(installation)).json()["partition"] in (3, 4)
    for wrong in ({}, {"partitions": 0}, {"partitions": 1001}, {"partitions": "3"}, {"partition": 3}):
        assert api.post(f"{URL}/resize", wrong).status_code == 400
    assert "resize the queue" in api.patch(URL, {"partitions": 5}).json()["detail"]
