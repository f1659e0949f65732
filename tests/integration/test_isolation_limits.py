"""An isolated tenant's messages are its own queue's, however they are published: its limits hold for them."""

import json
from uuid import uuid4

import pytest

from queueapi import backlog
from queueapi.actions.actor import SYSTEM
from queueapi.actions.message_batches import OutgoingMessage, plan_batch, publish_batch
from queueapi.actions.messages import plan_message, publish_message
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queues import change_queue
from queueapi.actions.tenants import change_tenant, create_tenant
from queueapi.choices import QueueState, Role
from queueapi.errors import QueueNotActive
from queueapi.models import Queue
from queueapi.rest.short_way import Asked, answer_shortly
from queuecore.errors import QueueOverloaded
from tests.integration.queue_kit import fill, isolated
from tests.people import bearer, person, token_of


@pytest.fixture(autouse=True)
def counted_each_time(monkeypatch) -> None:
    monkeypatch.setattr(backlog, "_KNOWN_FOR_S", 0)


@pytest.fixture
def own(installation) -> Queue:
    return isolated(installation.tenant, installation.queue, max_backlog=2)


def message(tenant, data: bytes = b"1") -> OutgoingMessage:
    return OutgoingMessage(tenant.id, uuid4(), data)


def test_its_own_queues_backlog_holds_for_what_comes_by_the_shared_queues_name(installation, own) -> None:
    fill(installation.queue, installation.tenant, 2)
    with pytest.raises(QueueOverloaded, match="2 messages wait in queue Telemetry, and 2 may") as told:
        fill(installation.queue, installation.tenant, 1)
    assert told.value.fields["queue"] == str(own.pk)
    with pytest.raises(QueueOverloaded):
        plan_message(installation.queue, installation.tenant, uuid4(), b"1")
    with pytest.raises(QueueOverloaded):
        publish_batch(installation.queue, [message(installation.tenant)])


def test_the_shared_queues_backlog_is_not_its(installation, own) -> None:
    other = create_tenant(SYSTEM, "Foundry")
    change_queue(SYSTEM, installation.queue, max_backlog=1)
    shared = Queue.objects.get(pk=installation.queue.pk)
    fill(shared, other, 1)
    fill(shared, installation.tenant, 1)
    with pytest.raises(QueueOverloaded):
        fill(shared, other, 1)


def test_of_a_batch_only_those_are_refused_whose_queue_is_full(installation, own) -> None:
    other = create_tenant(SYSTEM, "Foundry")
    fill(installation.queue, installation.tenant, 2)
    refused, stored = publish_batch(installation.queue, [message(installation.tenant), message(other)])
    assert isinstance(refused, QueueOverloaded)
    assert stored.topic.startswith("telemetry.")
    assert "isolated" not in stored.topic


def test_what_it_stores_is_its_own_queues(installation, own) -> None:
    change_tenant(SYSTEM, installation.tenant, stored_bytes=5_000)
    publish_message(installation.queue, installation.tenant, uuid4(), b"x" * 3_000)
    with pytest.raises(QueueOverloaded, match="quota stored_bytes is 5,000"):
        publish_message(installation.queue, installation.tenant, uuid4(), b"x" * 3_000)
    [refused] = publish_batch(installation.queue, [message(installation.tenant, b"x" * 3_000)])
    assert refused.fields["quota"] == "stored_bytes"


def test_a_plan_tells_where_it_would_be_stored_and_why_it_would_wait(installation, own) -> None:
    pause_queue(SYSTEM, own, reason="looked into")
    alone = plan_message(installation.queue, installation.tenant, uuid4(), b"1")
    many = plan_batch(installation.queue, [message(installation.tenant), message(create_tenant(SYSTEM, "Foundry"))])
    for plan in (alone, many):
        assert f"telemetry.isolated.{installation.tenant.id}." in plan.changes[0].what
        assert "looked into" in plan.warnings[0]
    assert "isolated" not in many.changes[1].what


def test_a_plan_of_many_refuses_a_queue_that_takes_no_messages(installation) -> None:
    Queue.objects.filter(pk=installation.queue.pk).update(state=QueueState.DRAINING)
    installation.queue.refresh_from_db()
    for publish in (publish_batch, plan_batch):
        with pytest.raises(QueueNotActive, match="is being drained and takes no more messages"):
            publish(installation.queue, [message(installation.tenant)])


def test_also_for_a_token_of_the_system_whichever_way_it_goes(installation, own) -> None:
    secret = token_of(person("ada", Role.ADMINISTRATOR), ["messages:write"])[1]
    fill(installation.queue, installation.tenant, 2)
    body = {"tenant": str(installation.tenant.id), "entity": str(uuid4()), "payload": 1}
    for named in (str(installation.queue.pk), "Telemetry"):
        shortly = answer_shortly(Asked(named, False, secret, None, json.dumps(body).encode()))
        at_length = bearer(secret).post(f"/api/v1/queues/{named}/messages", body, format="json")
        assert [shortly.status_code, at_length.status_code] == [429, 429]
        assert at_length.json()["code"] == "queue_overloaded"
