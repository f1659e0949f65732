"""A queue's page: how it is consumed, who consumes it, and pausing it."""

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.actions.actor import SYSTEM
from queueapi.actions.pauses import pause_queue
from queueapi.actions.processes import count_stale_commits
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import ConsumerState
from queueapi.cluster.models import Partition
from queueapi.models import AuditEntry, ConsumerStanding, LetterEpoch, Operation, Pause, Queue
from queueapi.selectors.consumers import attempts_by_tenant, consumers_of
from tests.instances import announce
from tests.page_forms import fields_of, words_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"


def ago(**length: float) -> datetime:
    return timezone.now() - timedelta(**length)


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log", partitions=2)


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="secret"))
    return client


def page(browser: Client, queue: Queue, name: str = "queue") -> str:
    return browser.get(reverse(name, args=[queue.pk])).content.decode()


def make_consumer(queue: Queue, *, lease_s: float = 10, **fields: Any) -> ConsumerStanding:
    host = announce(lease_s=lease_s)
    told = {
        "consumer_group": "main-consumer-0",
        "partitions": [0],
        "state": ConsumerState.RUNNING,
        "since": ago(minutes=3),
        "as_of": ago(seconds=2),
        "counts": {"handled": 1234, "tmp_failed": 3, "tmp_timed_out": 1, "dead_lettered": 5, "dropped": 1},
        "handled_per_s": 42.5,
        "budget": {"poll": 0.25, "process": 0.5, "back_pressure": 0.15, "commit": 0.1},
    }
    return ConsumerStanding.objects.create(service_id=host.service_id, queue=queue, **{**told, **fields})


def test_the_configuration_is_told_in_words(browser, queue) -> None:
    shown = page(browser, queue, "queue_configuration")
    for text in ("at least once", "one for each partition, 4 messages side by side", "BURST", "SKIP_ALL_FAILURES"):
        assert text in shown
    assert 'goes to <span class="mono">main.dlq</span>' in shown
    assert "Pause between retries" not in shown
    Queue.objects.update(
        processing_strategy="RETRY_ALL", retries=0, dlq_max_count=10, dlq_max_ratio=0.25, dlq_on_limit="halt"
    )
    shown = page(browser, queue, "queue_configuration")
    assert "without limit" in shown
    assert "10 or 25 % of a partition" in shown
    assert "in 60 s, then halt" in shown
    Queue.objects.update(dlq_enabled=False, consumer_per_partition=False)
    shown = page(browser, queue, "queue_configuration")
    assert "is counted and logged, and kept nowhere" in shown
    assert "one for all partitions" in shown


def test_secret_options_are_hidden(browser, queue) -> None:
    Queue.objects.update(handler="webhook", handler_options={"url": "https://a.example", "secret": "s3cret"})
    shown = page(browser, queue, "queue_configuration")
    assert "https://a.example" in shown
    assert "s3cret" not in shown


def test_consumers_are_shown_with_their_figures(browser, queue) -> None:
    make_consumer(queue)
    make_consumer(queue, consumer_group="main-consumer-1", partitions=[1], state=ConsumerState.STALLED, reason=HOSTILE)
    shown = page(browser, queue)
    assert shown.index("Partition 0") < shown.index("Partition 1")
    for text in ("42.5/s", "1,234", "poll 25 %, process 50 %, back pressure 15 %, commit 10 %", "Stalled", "host-1"):
        assert text in shown
    assert HOSTILE not in shown


def test_consumers_of_a_host_that_is_gone_are_told_apart(browser, queue) -> None:
    make_consumer(queue, lease_s=-1)
    assert "Host is gone" in page(browser, queue)


def test_attempts_are_shown_for_each_tenant(browser, queue) -> None:
    noisy = create_tenant(SYSTEM, HOSTILE)
    counted = {"total": 2000, "succeeded": 1000, "failed": 1, "tmp_failed": 2, "timed_out": 3, "tmp_timed_out": 4}
    for number in range(2):
        tenants = {str(noisy.id): counted, "": {"total": 1}, "other": {"total": 2}}
        make_consumer(queue, consumer_group=f"main-consumer-{number}", partitions=[number], tenants=tenants)
    rows, more = attempts_by_tenant(consumers_of(queue))
    assert [(row.name, row.total) for row in rows] == [(HOSTILE, 4000), ("others", 4), ("none named", 2)]
    assert (rows[0].succeeded, rows[0].failed, rows[0].timed_out, more) == (2000, 6, 14, 0)
    shown = page(browser, queue)
    assert "4,000" in shown
    assert HOSTILE not in shown


def test_of_many_tenants_the_busiest_are_shown(browser, queue) -> None:
    make_consumer(queue, tenants={str(UUID(int=number)): {"total": number} for number in range(1, 13)})
    shown = page(browser, queue)
    assert str(UUID(int=3)) in shown
    assert str(UUID(int=2)) not in shown
    assert "2 tenants more have fewer." in shown


def test_no_tenant_has_been_handled_for(browser, queue) -> None:
    make_consumer(queue)
    assert "No message has been handed to a handler since the consumers began" in page(browser, queue)


def test_nobody_consumes_it(browser, queue) -> None:
    assert "Nobody consumes this queue yet" in page(browser, queue)


def test_a_queue_is_paused_and_resumed(browser, queue) -> None:
    address, typed = reverse("pause_queue", args=[queue.pk]), {"what": "", "reason": "billing is away"}
    plan = browser.post(address, typed).content.decode()
    assert "1 queue would be paused" in plan
    assert 'value="billing is away"' in plan
    assert f"""href="{reverse("queue", args=[queue.pk])}#pauses">Don't pause</a>""" in plan
    assert not Pause.objects.exists()
    shown = browser.post(address, {**typed, "confirm": "yes"}, follow=True).content.decode()
    assert "Paused: everything." in shown
    assert "billing is away" in shown
    pause = Pause.objects.get()
    assert (pause.paused_by, pause.tenant, pause.partition) == ("root", None, None)
    assert "1 queue is paused already" in browser.post(address, typed).content.decode()
    address = reverse("resume_queue", args=[queue.pk, pause.pk])
    plan = browser.post(address).content.decode()
    assert "1 queue would be resumed" in plan
    assert "Everything paused by root" in plan
    assert Pause.objects.exists()
    answer = browser.post(address, {"confirm": "yes"}, follow=True)
    assert "Resumed: everything." in answer.content.decode()
    assert not Pause.objects.exists()
    again = browser.post(address, follow=True)
    assert "it was not paused any more" in again.content.decode()
    assert set(AuditEntry.objects.filter(object_id=str(queue.pk)).values_list("action", flat=True)) == {
        "pause",
        "resume",
    }


def test_what_an_operation_holds_back_is_its_own_to_let_go(browser, queue) -> None:
    tenant = create_tenant(SYSTEM, "Greenhouse")
    pause_queue(SYSTEM, queue, tenant=tenant, reason="by a person")
    operation = Operation.objects.create(kind="return_tenant", summary="Return")
    held = Pause.objects.create(queue=queue, tenant=tenant, operation=operation, reason="it returns", paused_by="ada")
    answer = browser.post(reverse("resume_queue", args=[queue.pk, held.pk]), follow=True)
    assert "Not resumed: it is lifted when what is under way has ended." in answer.content.decode()
    assert Pause.objects.count() == 2


def test_a_tenant_or_a_partition_is_paused(browser, queue) -> None:
    tenant = create_tenant(SYSTEM, "Noisy")
    url = reverse("pause_queue", args=[queue.pk])
    plan = browser.post(url, {"what": str(tenant.pk), "reason": "too noisy"})
    assert "Pause tenant Noisy of Main" in words_of(plan)
    assert "messages go on being stored" in words_of(plan)
    assert not Pause.objects.exists()
    browser.post(url, fields_of(plan.content.decode()))
    browser.post(url, fields_of(browser.post(url, {"what": "1", "reason": "poison"}).content.decode()))
    assert {(pause.tenant, pause.partition) for pause in Pause.objects.all()} == {(tenant, None), (None, 1)}
    for pause in Pause.objects.all():
        address = reverse("resume_queue", args=[queue.pk, pause.pk])
        plan = browser.post(address)
        assert f"Resume {pause.what} of Main" in words_of(plan)
        assert Pause.objects.filter(pk=pause.pk).exists()
        browser.post(address, fields_of(plan.content.decode()))
    assert not Pause.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"reason": ""}, "This field is required."),
        ({"what": "7"}, "Select a valid choice."),
        ({"reason": "x" * 501}, "at most 500 characters"),
    ],
)
def test_what_was_typed_is_kept_when_a_pause_is_refused(browser, queue, wrong, told) -> None:
    typed = {"what": "1", "reason": "billing is away", **wrong}
    shown = browser.post(reverse("pause_queue", args=[queue.pk]), typed).content.decode()
    assert told in shown
    if "reason" not in wrong:
        assert 'value="billing is away"' in shown
    assert not Pause.objects.exists()


def test_the_overview_tells_of_pauses_and_of_consumers_in_trouble(browser, queue) -> None:
    make_consumer(queue, state=ConsumerState.STANDING_STILL, reason="the disk is full")
    pause_queue(SYSTEM, queue, partition=1, reason="too many dead letters")
    shown = browser.get(reverse("overview")).content.decode()
    assert "Main: the consumer of partition 0 has been standing still for 3 min: the disk is full." in shown
    assert re.search(r"Main: partition 1 was paused by system \d+ s ago: too many dead letters\.", shown)


def test_strangers_pause_nothing(client, queue) -> None:
    client.post(reverse("pause_queue", args=[queue.pk]), {"what": "", "reason": "x"})
    assert not Pause.objects.exists()


def test_what_lost_consumers_did_is_told(browser, queue) -> None:
    make_consumer(queue, counts={"handled": 1})
    assert "Refused" not in page(browser, queue)
    count_stale_commits({queue.pk: 1, UUID(int=1): 5})
    count_stale_commits({queue.pk: 2})
    assert "Refused" in (shown := page(browser, queue))
    assert "3 commits, 0 dead letters" in shown
    LetterEpoch.objects.create(topic=queue.partition_info(0).full_topic_name, partition=0, epoch=9, refused=1)
    assert "3 commits, 1 dead letter." in page(browser, queue)
    assert 'queue_stale_refused_total{queue="Main",tenant="System"} 3' in browser.get("/metrics").getvalue().decode()


def test_partitions_that_nobody_may_have_are_told_with_the_reason(browser, queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(label="gpu")
    for number in range(2):
        info = queue.partition_info(number)
        Partition.objects.create(
            name=str(info), service_type="TB_RULE_ENGINE", queue=queue.name, number=number, tenant=queue.tenant_id,
            label="gpu", unassigned="no service has the label 'gpu'",
        )  # fmt: skip
    shown = page(browser, queue)
    assert "Nobody consumes partitions 0, 1, and messages wait: no service has the label &#x27;gpu&#x27;." in shown
    assert "only those with the label" in page(browser, queue, "queue_configuration")
