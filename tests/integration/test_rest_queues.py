"""Queues over REST: creating, changing, pausing, and who consumes them."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi import runtime
from queueapi.actions.processes import FORGET_AFTER, record_standings
from queueapi.choices import ConsumerState
from queueapi.cluster.models import ServiceInstance
from queueapi.models import AuditEntry, ConsumerStanding, Queue
from queuecore.topics import SYSTEM_TENANT
from tests.instances import announce

QUEUES = "/api/v1/queues"
URL = f"{QUEUES}/telemetry"


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


def test_a_queue_is_created_with_its_topics(api) -> None:
    body = {"name": "Orders", "topic": "orders", "handler": "log", "partitions": 2, "submit_strategy": "SEQUENTIAL"}
    answer = api.post(QUEUES, body)
    assert answer.status_code == 201
    made = answer.json()
    assert (made["tenant"], made["submit_strategy"]) == (str(SYSTEM_TENANT), "SEQUENTIAL")
    assert (made["processing_strategy"], made["pauses"], made["dlq_enabled"]) == ("SKIP_ALL_FAILURES", [], True)
    assert {"orders.0", "orders.1", "orders.dlq"} <= runtime.provider().admin().topics().keys()
    assert AuditEntry.objects.filter(action="create", actor_name="root", object_id=made["id"]).exists()


def test_a_tenants_own_queue(api, installation) -> None:
    tenant = str(installation.tenant.id)
    answer = api.post(QUEUES, {"tenant": tenant, "name": "Own", "topic": "own", "handler": "log"})
    assert (answer.status_code, answer.json()["tenant"]) == (201, tenant)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"submit_strategy": "ALL"}, "choose one of BURST, BATCH"),
        ({"name": "a b"}, "enter 1 to 100 ASCII letters"),
        ({"name": "TELEMETRY"}, "another queue is called so"),
        ({"topic": "orders.dlq"}, "which Switchyard appends itself"),
        ({"handler": "nobody"}, "no handler is called 'nobody'"),
        ({"tenant": "13814000-1dd2-11b2-8080-000000000000"}, "does not exist"),
        ({"retrys": 3}, "did you mean retries?"),
        ({"partitions": 0}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_created_is_refused_with_what_to_enter(api, change, told) -> None:
    answer = api.post(QUEUES, {"name": "Orders", "topic": "orders", "handler": "log", **change})
    assert answer.status_code == 400
    assert answer.json()["code"] in ("invalid_input", "invalid_name")
    assert told in answer.content.decode()
    assert not Queue.objects.filter(topic="orders").exists()


def test_a_change_is_made_and_told(api) -> None:
    answer = api.patch(URL, {"processing_strategy": "RETRY_ALL", "retries": 0, "failure_percentage": 12.5})
    assert answer.status_code == 200
    changed = answer.json()
    assert (changed["processing_strategy"], changed["retries"], changed["failure_percentage"]) == ("RETRY_ALL", 0, 12.5)
    assert AuditEntry.objects.get(action="change").actor_name == "root"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"partitions": 5}, "partitions of a queue is not entered; resize the queue"),
        ({"name": "x"}, "name of a queue never changes"),
        ({"dlq_max_ratio": 2}, "less than or equal to 1"),
        ({"delivery": "sometimes"}, "choose one of at_most_once"),
        ({"handler_options": {"colour": "red"}}, "there is no option 'colour'"),
        ({"retrys": 3}, "did you mean retries?"),
        ([], "Expected a dictionary"),
    ],
)
def test_what_cannot_be_changed_is_refused_with_what_to_enter(api, change, told) -> None:
    answer = api.patch(URL, change)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert told in answer.content.decode()


def test_secret_options_are_shown_to_nobody(api) -> None:
    options = {"url": "https://hooks.example.org/x", "secret": "s3cret-enough-for-a-signature-0123"}
    answer = api.patch(URL, {"handler": "webhook", "handler_options": options})
    hidden = {"url": "https://hooks.example.org/********", "secret": "********"}
    assert answer.json()["handler_options"] == hidden
    assert "s3cret" not in api.get(QUEUES).content.decode()
    again = api.patch(URL, {"handler_options": answer.json()["handler_options"]})
    assert again.status_code == 200
    assert Queue.objects.get(name="Telemetry").handler_options == options


@pytest.mark.parametrize(
    "hidden",
    [{"secret": "********"}, {"url": "https://hooks.example.org/********"}, {"headers": {"Authorization": "********"}}],
)
def test_what_stands_for_a_secret_is_not_stored_as_one(api, hidden) -> None:
    options = {"url": "https://hooks.example.org/x", **hidden}
    body = {"name": "Hooks", "topic": "hooks", "handler": "webhook", "handler_options": options}
    for answer in (api.post(f"{QUEUES}?dry_run=true", body), api.post(QUEUES, body)):
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
        assert "enter the value itself, or leave it out" in answer.json()["detail"]
    assert not Queue.objects.filter(name="Hooks").exists()


@pytest.mark.parametrize("depth", [30, 990, 50_000])
def test_options_nested_too_deeply_are_refused(api, depth) -> None:
    body = '{"handler_options": {"level": %s}}' % ("[" * depth + "]" * depth)
    answer = api.patch(URL, body, content_type="application/json")
    assert answer.status_code == 400
    assert "nested" in answer.json()["detail"]


def test_text_that_no_database_holds_is_refused(api) -> None:
    for text in ("a\\u0000b", "a\\ud800b"):
        body = f'{{"handler": "forward", "handler_options": {{"queue": "{text}"}}}}'
        answer = api.patch(URL, body, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert Queue.objects.get(name="Telemetry").handler == "demo.rule_engine"


def test_pausing_and_resuming(api, installation) -> None:
    tenant = str(installation.tenant.id)
    paused = api.post(f"{URL}/pause", {"tenant": tenant, "reason": "too noisy"})
    assert paused.status_code == 200
    [pause] = paused.json()["pauses"]
    assert (pause["tenant"], pause["reason"], pause["paused_by"]) == (tenant, "too noisy", "root")
    assert len(api.post(f"{URL}/pause", {"partition": 0, "reason": "poison"}).json()["pauses"]) == 2
    assert len(api.post(f"{URL}/resume", {"partition": 0}).json()["pauses"]) == 1
    assert api.post(f"{URL}/resume", {"tenant": tenant}).json()["pauses"] == []
    assert api.post(f"{URL}/resume", {}).status_code == 200


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "This field is required"),
        ({"reason": " "}, "may not be blank"),
        ({"reason": "x", "partition": 3}, "name one from 0 to 2"),
        ({"reason": "x", "partition": "first"}, "send a whole number"),
    ],
)
def test_a_pause_that_cannot_be_is_refused(api, body, told) -> None:
    answer = api.post(f"{URL}/pause", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert told in answer.content.decode()


def test_who_consumes_a_queue_and_how_it_is(api, installation) -> None:
    announce("host-1")
    standing = ConsumerStanding(
        queue=installation.queue,
        consumer_group="tb_rule_engine_telemetry-consumer-0",
        partitions=[0],
        state=ConsumerState.STALLED,
        reason="nothing is done",
        since=timezone.now(),
        counts={"handled": 7, "total": 9, "tmp_timed_out": 2},
        tenants={str(installation.tenant.id): {"total": 9, "tmp_timed_out": 2}},
        budget={"poll": 1.0},
    )
    record_standings("host-1", [standing])
    [consumer] = api.get(f"{URL}/consumers").json()
    assert (consumer["service"], consumer["state"], consumer["reason"]) == ("host-1", "stalled", "nothing is done")
    assert (consumer["counts"]["handled"], consumer["handled_per_s"]) == (7, None)
    assert consumer["tenants"] == {str(installation.tenant.id): {"total": 9, "tmp_timed_out": 2}}
    statistics = consumer["statistics"]
    assert (statistics["totalMsgs"], statistics["tmpTimeout"], statistics["failedIterations"]) == (9, 2, 0)
    record_standings("host-1", [])
    assert api.get(f"{URL}/consumers").json() == []


def test_consumers_of_a_host_that_is_gone_are_told_apart_and_forgotten_in_time(api, installation) -> None:
    announce("host-1")
    standing = ConsumerStanding(
        queue=installation.queue, consumer_group="c", partitions=[0], state=ConsumerState.RUNNING, since=timezone.now()
    )
    record_standings("host-1", [standing])
    assert [one["alive"] for one in api.get(f"{URL}/consumers").json()] == [True]
    ServiceInstance.objects.update(lease_expires_at=timezone.now())
    assert [one["alive"] for one in api.get(f"{URL}/consumers").json()] == [False]
    record_standings("host-2", [])
    assert [one["alive"] for one in api.get(f"{URL}/consumers").json()] == [False]
    ConsumerStanding.objects.update(as_of=timezone.now() - FORGET_AFTER)
    record_standings("host-2", [])
    assert api.get(f"{URL}/consumers").json() == []


def test_guests_change_nothing(installation) -> None:
    guest = APIClient()
    guest.force_authenticate(User.objects.create_user("guest", password="secret"))
    assert guest.post(QUEUES, {}).status_code == 403
    assert guest.patch(URL, {}).status_code == 403
    assert guest.post(f"{URL}/pause", {"reason": "x"}).status_code == 403
    assert guest.get(f"{URL}/consumers").status_code == 403
