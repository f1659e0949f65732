"""Two at once, and a process that is killed in between: what is asked for has one effect."""

from collections.abc import Callable
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi import runtime, wakeups
from queueapi.actions.actor import SYSTEM
from queueapi.actions.idempotency import keys_kept_since, purge_keys
from queueapi.actions.queues import change_queue
from queueapi.errors import ChangedMeanwhile
from queueapi.models import AuditEntry, IdempotencyKey, Queue
from tests.kill_points import die_at
from tests.processes import Child
from tests.rest_kit import API, World, messages_in

QUEUE = f"{API}/queues/telemetry"
ORDERS = {"name": "Orders", "topic": "orders", "handler": "log"}


@pytest.fixture
def world(database, installation) -> World:
    return World(installation)


def api() -> APIClient:
    """For one thread or process."""
    client = APIClient()
    user, _ = User.objects.get_or_create(username="root", defaults={"is_staff": True, "is_superuser": True})
    client.force_authenticate(user)
    return client


def at_once(*requests: Callable[[APIClient], Any]) -> list[Any]:
    """What each is answered with, sent as nearly together as threads can."""
    api()
    barrier, answers = Barrier(len(requests)), {}

    def send(number: int, request: Callable[[APIClient], Any]) -> None:
        try:
            client = api()
            barrier.wait()
            answers[number] = request(client)
        finally:
            connections.close_all()

    threads = [Thread(target=send, args=each) for each in enumerate(requests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[number] for number in range(len(requests))]


def test_of_two_changes_of_what_both_have_seen_one_wins(world) -> None:
    seen = api().get(QUEUE)["ETag"]
    changes = [{"retries": 7}, {"retries": 8}]
    answers = at_once(
        *(lambda client, change=change: client.patch(QUEUE, change, headers={"If-Match": seen}) for change in changes)
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    [won] = [answer.json() for answer in answers if answer.status_code == 200]
    assert (Queue.objects.get(name="Telemetry").retries, won["version"]) == (won["retries"], 2)
    assert AuditEntry.objects.filter(action="change").count() == 1


def test_of_two_changes_without_a_precondition_none_is_lost_unseen(world) -> None:
    answers = at_once(
        lambda client: client.patch(QUEUE, {"retries": 7}), lambda client: client.patch(QUEUE, {"concurrency": 2})
    )
    done = [answer for answer in answers if answer.status_code == 200]
    assert {answer.json()["code"] for answer in answers if answer not in done} <= {"changed_meanwhile"}
    assert Queue.objects.get(name="Telemetry").version == 1 + len(done) > 1


def test_a_change_of_what_is_no_longer_so_is_refused(world) -> None:
    assert change_queue(SYSTEM, world.queue, seen=1, retries=7).version == 2
    with pytest.raises(ChangedMeanwhile, match="load it anew"):
        change_queue(SYSTEM, world.queue, seen=1, retries=8)
    assert Queue.objects.get(name="Telemetry").retries == 7


def test_the_same_request_twice_at_once_has_one_effect(world) -> None:
    create = [lambda client: client.post(f"{API}/queues", ORDERS, headers={"Idempotency-Key": "1"})] * 2
    answers = at_once(*create)
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].content == answers[1].content
    assert sorted("Idempotent-Replayed" in answer for answer in answers) == [False, True]
    assert AuditEntry.objects.filter(action="create", object_type="queue", actor_name="root").count() == 1


def test_the_same_message_twice_at_once_is_stored_once(world) -> None:
    body = world.message
    publish = [lambda client: client.post(f"{QUEUE}/messages", body, headers={"Idempotency-Key": "1"})] * 2
    answers = at_once(*publish)
    [other] = [answer for answer in answers if answer.status_code != 201 or "Idempotent-Replayed" in answer]
    if other.status_code != 201:
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_in_use")
        assert 0 < int(other["Retry-After"]) <= 60
    assert messages_in(world) == 1


def killed(request: Callable[[APIClient], Any], owner: Any, name: str) -> None:
    """Sent by a process that dies of kill -9 when this is called."""

    def send(_: Any) -> None:
        die_at(owner, name)
        request(api())

    api()
    runtime.close_provider()
    wakeups._sender.cache_clear()
    connections.close_all()
    with Child(send) as child:
        assert child.hear_all() == []
        assert child.join() == -9


def test_killed_before_the_commit_nothing_is_there_and_the_request_can_be_sent_again(world) -> None:
    from queueapi.rest.conventions import idempotency

    def create(client: APIClient) -> Any:
        return client.post(f"{API}/queues", ORDERS, headers={"Idempotency-Key": "1"})

    killed(create, idempotency, "keep_answer")
    assert not Queue.objects.filter(name="Orders").exists()
    assert not IdempotencyKey.objects.exists()
    answer = create(api())
    assert (answer.status_code, "Idempotent-Replayed" in answer) == (202, False)
    assert Queue.objects.filter(name="Orders").count() == 1


def test_killed_after_the_commit_all_is_there_and_the_answer_too(world) -> None:
    from queueapi.actions import provisioning

    def create(client: APIClient) -> Any:
        return client.post(f"{API}/queues", ORDERS, headers={"Idempotency-Key": "1"})

    killed(create, provisioning, "provision_queue")
    answer = create(api())
    assert (answer.status_code, answer["Idempotent-Replayed"]) == (202, "true")
    assert answer.json()["id"] == str(Queue.objects.get(name="Orders").operation_id)


def test_killed_after_a_message_was_stored_the_key_is_free_when_the_lease_is_over(world) -> None:
    from queueapi.rest.conventions import idempotency

    body = world.message

    def publish(client: APIClient) -> Any:
        return client.post(f"{QUEUE}/messages", body, headers={"Idempotency-Key": "1"})

    killed(publish, idempotency, "keep_answer")
    assert messages_in(world) == 1
    busy = publish(api())
    assert (busy.status_code, busy.json()["code"]) == (409, "idempotency_key_in_use")
    assert messages_in(world) == 1
    IdempotencyKey.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    # Nobody knows any more whether it was stored: at least once.
    assert publish(api()).status_code == 201
    assert messages_in(world) == 2
    assert publish(api())["Idempotent-Replayed"] == "true"


def test_keys_are_forgotten_after_a_day(world) -> None:
    def pause() -> Any:
        return api().post(f"{QUEUE}/pause", {"reason": "too noisy"}, headers={"Idempotency-Key": "1"})

    pause()
    assert purge_keys(keys_kept_since()) == 0
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
    # Whether it is gone yet or not.
    assert "Idempotent-Replayed" not in pause()
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert (purge_keys(keys_kept_since()), IdempotencyKey.objects.count()) == (1, 0)
