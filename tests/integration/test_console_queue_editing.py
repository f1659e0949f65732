"""Creating and changing a queue in the browser: its plan first, and nobody's change lost."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from console.queue_configuration_forms import GROUPS, MADE_WITH, NewQueueForm, QueueForm
from console.queue_field_texts import HELP, LABELS
from queueapi.actions.actor import Actor
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queue_checks import CHANGEABLE
from queueapi.actions.queues import change_queue, create_queue
from queueapi.choices import Role
from queueapi.models import AuditEntry, Queue
from tests.integration.queue_kit import new_queue
from tests.page_forms import fields_of
from tests.people import person

ADA = Actor("ada")


@pytest.fixture
def browser(client: Client, installation) -> Client:
    client.force_login(User.objects.create_superuser("root", password="secret"))
    return client


def typed_in(page: str) -> dict[str, str]:
    return fields_of(page, 'class="column queue-form"')


def open_form(browser: Client, queue: Queue | None = None) -> dict[str, str]:
    address = reverse("change_queue", args=[queue.pk]) if queue else reverse("create_queue")
    return typed_in(browser.get(address).content.decode())


def send(browser: Client, queue: Queue | None, sent: dict[str, str], **typed: Any) -> Any:
    address = reverse("change_queue", args=[queue.pk]) if queue else reverse("create_queue")
    values = {name: value for name, value in {**sent, **typed}.items() if value is not None}
    return browser.post(address, values)


def confirm(browser: Client, queue: Queue | None, plan: Any) -> Any:
    """What the plan's page holds, confirmed."""
    return send(browser, queue, typed_in(plan.content.decode()), confirm="yes")


def test_every_field_is_asked_for_once_and_has_its_words() -> None:
    asked = [name for names in GROUPS.values() for name in names]
    assert sorted(asked) == sorted(CHANGEABLE)
    assert set(QueueForm.base_fields) == set(CHANGEABLE)
    assert set(NewQueueForm.base_fields) == {*CHANGEABLE, *MADE_WITH}
    assert set(LABELS) | set(HELP) <= set(NewQueueForm.base_fields)
    told = {*HELP, "consumer_per_partition", "dlq_enabled", "submit_strategy", "processing_strategy"}
    assert set(NewQueueForm.base_fields) <= told


def test_tenants_are_offered_where_one_is_asked_for(browser, installation) -> None:
    page = browser.get(reverse("create_queue")).content.decode()
    [field] = re.findall(r'<input[^>]* name="tenant"[^>]*>', page)
    assert 'list="tenant-names"' in field
    offered = page.partition('<datalist id="tenant-names">')[2].partition("</datalist>")[0]
    assert f'value="{installation.tenant.name}"' in offered


def test_a_queue_is_created_after_its_plan(browser, installation) -> None:
    plan = send(
        browser,
        None,
        open_form(browser),
        name="Billing",
        topic="billing",
        tenant=installation.tenant.name,
        handler="log",
        partitions="5",
        submit_strategy="BATCH",
        batch_size="7",
        retention_ms="2 d",
        retention_bytes="1.5 GiB",
        dlq_enabled=None,
        plan="yes",
    )
    shown = plan.content.decode()
    assert "What would change" in shown
    assert "messages that are given up are counted and logged, and gone" in shown
    rows = shown.partition("What would change</caption>")[2].partition("</tbody>")[0]
    told = dict(re.findall(r'class="mono">([^<]*)</th><td[^>]*>[^<]*</td><td[^>]*>([^<]*)', rows))
    assert told["Kept for"] == "2 d"
    assert told["Kept up to"] == "1536 MiB"
    # What every new queue has is not told again.
    assert "Retries" not in told
    assert not Queue.objects.filter(name="Billing").exists()
    answer = confirm(browser, None, plan)
    made = Queue.objects.get(name="Billing")
    assert answer.url == reverse("queue", args=[made.pk])
    assert (made.partitions, made.batch_size, made.tenant) == (5, 7, installation.tenant)
    assert (made.retention_ms, made.retention_bytes) == (172_800_000, 3 * 2**29)
    assert made.dlq_enabled is False
    assert made.consumer_per_partition is True


def test_what_is_refused_is_told_at_its_field_and_what_was_typed_stays(browser, installation) -> None:
    sent = open_form(browser)
    wrong = {
        "name": "Billing",
        "topic": "billing",
        "handler": "log",
        "tenant": "nobody such",
        "retention_ms": "soon",
        "retry_pause_ms": "9 s",
        "max_retry_pause_ms": "1 s",
        "custom_properties": "nonsense",
        "handler_options": "[]",
    }
    shown = send(browser, None, sent, **wrong).content.decode()
    assert not Queue.objects.filter(name="Billing").exists()
    for name, message in {
        "tenant": "There is no tenant",
        "retention_ms": "&quot;soon&quot; cannot be read",
        "max_retry_pause_ms": "use no less than retry_pause_ms",
        "custom_properties": "&quot;nonsense&quot; cannot be read",
        "handler_options": "This is no JSON object",
    }.items():
        assert re.search(f'id="id_{name}_error">{message}', shown), name
    kept = typed_in(shown)
    assert {name: kept[name] for name in wrong} == wrong


@pytest.mark.parametrize(
    ("typed", "field", "message"),
    [
        ({"handler": "webhook"}, "handler_options", "the option &#x27;url&#x27; is missing"),
        ({"custom_properties": "nonsense = 1"}, "custom_properties", "topics have no &#x27;nonsense&#x27;"),
        ({"name": "a b"}, "name", "a queue cannot be called &#x27;a b&#x27;"),
        ({"topic": "billing.dlq"}, "topic", "billing.dlq"),
        ({"name": "telemetry"}, "name", "another queue is called so, whatever the case"),
        ({"partitions": "0"}, "partitions", "0 cannot be; use 1 to 1,000 partitions"),
    ],
)
def test_what_the_action_refuses_is_told_at_its_field(browser, installation, typed, field, message) -> None:
    sent = {**open_form(browser), "name": "Billing", "topic": "billing", "handler": "log"}
    shown = send(browser, None, sent, **typed, plan="yes").content.decode()
    assert re.search(f'id="id_{field}_error">[^<]*{re.escape(message)}', shown)


def test_a_change_shows_its_plan_and_writes_what_was_typed_alone(browser, installation) -> None:
    queue = installation.queue
    plan = send(browser, queue, open_form(browser, queue), concurrency="9", delivery="at_most_once")
    shown = plan.content.decode()
    assert "messages that are being handled when a host dies are lost" in shown
    assert re.search(r'<th scope="row" class="mono">Messages side by side</th><td[^>]*>4</td><td[^>]*>9</td>', shown)
    assert Queue.objects.get(pk=queue.pk).concurrency == 4
    answer = confirm(browser, queue, plan)
    assert answer.url == reverse("queue_configuration", args=[queue.pk])
    assert Queue.objects.get(pk=queue.pk).concurrency == 9
    entry = AuditEntry.objects.filter(action="change").first()
    assert entry.after == {"concurrency": 9, "delivery": "at_most_once"}


def test_what_is_typed_after_the_plan_is_planned_first(browser, installation) -> None:
    queue = installation.queue
    plan = send(browser, queue, open_form(browser, queue), concurrency="9")
    again = send(browser, queue, typed_in(plan.content.decode()), concurrency="10", confirm="yes")
    assert "This is not what the plan before was for" in again.content.decode()
    assert Queue.objects.get(pk=queue.pk).concurrency == 4
    confirm(browser, queue, again)
    assert Queue.objects.get(pk=queue.pk).concurrency == 10


@pytest.mark.parametrize(("stored", "shown"), [(0.0, "0"), (5.0, "5"), (2.5, "2.5")])
def test_a_whole_number_is_shown_as_one(browser, installation, stored, shown) -> None:
    Queue.objects.filter(pk=installation.queue.pk).update(failure_percentage=stored)
    assert open_form(browser, installation.queue)["failure_percentage"] == shown


def test_nothing_typed_is_nothing_to_confirm(browser, installation) -> None:
    shown = send(browser, installation.queue, open_form(browser, installation.queue)).content.decode()
    assert "Nothing would change." in shown
    assert 'name="confirm"' not in shown


def test_name_and_topic_never_change(browser, installation) -> None:
    queue = installation.queue
    sent = open_form(browser, queue)
    assert not {*MADE_WITH} & sent.keys()
    plan = send(browser, queue, sent, name="Other", topic="other", partitions="9", concurrency="9")
    confirm(browser, queue, plan)
    after = Queue.objects.get(pk=queue.pk)
    assert (after.name, after.topic, after.partitions) == (queue.name, queue.topic, queue.partitions)


def test_whoever_comes_second_is_shown_what_the_first_changed(browser, installation) -> None:
    queue = installation.queue
    sent = open_form(browser, queue)
    change_queue(ADA, queue, concurrency=8, retention_ms=86_400_000)
    answer = send(browser, queue, sent, concurrency="16", batch_size="77", confirm="yes", plan=None)
    shown = answer.content.decode()
    assert answer.status_code == 409
    assert "Somebody else has changed this queue since you opened it" in shown
    rows = shown.partition("What was changed meanwhile</caption>")[2].partition("</tbody>")[0]
    cells = [re.sub("<[^>]+>", " ", row).split() for row in re.findall(r"<tr><th.*?</tr>", rows)]
    concurrency = next(row for row in cells if "side" in row)
    assert [each for each in concurrency if each in ("4", "8", "16", "ada")] == ["4", "8", "ada", "16"]
    kept = next(row for row in cells if "Kept" in row)
    assert "nothing else" in " ".join(kept)
    both = typed_in(shown)
    assert (both["concurrency"], both["batch_size"], both["retention_ms"]) == ("16", "77", "1 d")
    assert Queue.objects.get(pk=queue.pk).concurrency == 8
    # Having seen it, they go on.
    confirm(browser, queue, send(browser, queue, both))
    after = Queue.objects.get(pk=queue.pk)
    assert (after.concurrency, after.batch_size, after.retention_ms) == (16, 77, 86_400_000)


def test_a_pause_in_between_is_no_conflict(browser, installation) -> None:
    queue = installation.queue
    sent = open_form(browser, queue)
    pause_queue(ADA, queue, reason="quiet")
    plan = send(browser, queue, sent, concurrency="16")
    assert plan.status_code == 200
    assert confirm(browser, queue, plan).status_code == 302
    assert Queue.objects.get(pk=queue.pk).concurrency == 16


def test_a_form_that_nobody_signed_is_taken_for_what_is_there_now(browser, installation) -> None:
    queue = installation.queue
    plan = send(browser, queue, {**open_form(browser, queue), "seen": "nonsense"}, concurrency="16")
    assert confirm(browser, queue, plan).status_code == 302
    assert Queue.objects.get(pk=queue.pk).concurrency == 16


def test_secrets_are_neither_shown_nor_lost(browser, installation) -> None:
    options = {"url": "https://a.example/hook", "secret": "s3cret-of-thirty-two-characters-and-more"}
    queue = new_queue(installation.queue.tenant, "Hooked", handler="webhook", handler_options=options)
    page = browser.get(reverse("change_queue", args=[queue.pk])).content.decode()
    assert "s3cret" not in page
    plan = send(browser, queue, typed_in(page), concurrency="9")
    assert "s3cret" not in plan.content.decode()
    confirm(browser, queue, plan)
    after = Queue.objects.get(pk=queue.pk)
    assert (after.concurrency, after.handler_options) == (9, options)


def test_one_that_is_gone_is_not_found(browser, installation) -> None:
    queue = installation.queue
    sent = open_form(browser, queue)
    Queue.objects.filter(pk=queue.pk).delete()
    assert send(browser, queue, sent).status_code == 404


def test_the_picture_and_the_options_follow_what_is_chosen(browser, installation) -> None:
    chosen = {"submit_strategy": "SEQUENTIAL", "processing_strategy": "RETRY_FAILED"}
    shown = browser.get(reverse("explain_strategies"), chosen).content.decode()
    assert "SEQUENTIAL and RETRY_FAILED" in shown
    assert "<html" not in shown
    assert "<figure" not in browser.get(reverse("explain_strategies"), {"submit_strategy": "x"}).content.decode()
    shown = browser.get(reverse("explain_handler"), {"handler": "webhook"}).content.decode()
    for text in ("url", "needed", "never shown again"):
        assert text in shown
    assert "has no options" in browser.get(reverse("explain_handler"), {"handler": "<b>"}).content.decode()


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR])
def test_who_may_not_is_told_why(client, installation, role) -> None:
    client.force_login(person("olga", role))
    address = reverse("change_queue", args=[installation.queue.pk])
    shown = client.get(address).content.decode()
    assert "which may not change queues" in shown
    assert client.post(address, {}).status_code == 403
    assert client.post(reverse("create_queue"), {}).status_code == 403


def test_a_handler_that_nobody_has_registered_here_can_stay(browser, installation) -> None:
    queue = create_queue(ADA, installation.queue.tenant, name="Odd", topic="odd", handler="log")
    Queue.objects.filter(pk=queue.pk).update(handler="elsewhere.handler")
    queue.refresh_from_db()
    assert open_form(browser, queue)["handler"] == "elsewhere.handler"
