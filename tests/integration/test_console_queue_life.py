"""A queue's state on its page, and the plan before it is drained or deleted."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queueapi.models import Operation, Queue
from tests.integration.queue_kit import fill, new_queue, run_until_told
from tests.page_forms import confirm, fields_of, first_button


@pytest.fixture
def browser(client: Client, installation) -> Client:
    client.force_login(User.objects.create_superuser("root", password="secret"))
    return client


def show(browser: Client, name: str, thing: Queue | Operation) -> str:
    return browser.get(reverse(name, args=[thing.pk])).content.decode()


def test_the_page_says_how_a_queue_is_and_how_its_messages_are_kept(browser, installation) -> None:
    shown = show(browser, "queue", installation.queue)
    for text in ("Active", "Drain…", "Delete…"):
        assert text in shown
    shown = show(browser, "queue_configuration", installation.queue)
    for text in ("for 7 d, in segments of 50 MiB", "murmur3_128", "as the provider is"):
        assert text in shown


def test_the_plan_comes_first(browser, installation) -> None:
    fill(installation.queue, installation.tenant, 3)
    shown = show(browser, "drain_queue", installation.queue)
    assert "3 messages wait" in shown
    assert "Nobody consumes it now" in shown
    assert not Operation.objects.filter(kind="drain_queue").exists()
    answer = confirm(browser, reverse("drain_queue", args=[installation.queue.pk]), {})
    operation = Operation.objects.get(kind="drain_queue")
    assert answer.redirect_chain == [(reverse("operation", args=[operation.pk]), 302)]
    shown = show(browser, "queue", installation.queue)
    for text in ("Draining", "It takes no more messages", "Cancel, and activate it", "0 of 3"):
        assert text in shown
    browser.post(reverse("activate_queue", args=[installation.queue.pk]))
    assert Queue.objects.get(pk=installation.queue.pk).state == "active"


def test_a_plan_follows_what_is_chosen_and_says_why_not(browser, installation) -> None:
    other = new_queue(installation.queue.tenant, "Other", handler="forward", handler_options={"queue": "Telemetry"})
    address = reverse("delete_queue", args=[installation.queue.pk])
    shown = browser.post(address, {"move_to": str(other.pk)}).content.decode()
    assert "Handlers of Other send to it; change or delete those queues first." in shown
    assert f'<option value="{other.pk}" selected>' in shown
    refused = confirm(browser, address, {}).content.decode()
    assert "Nothing was done: queue Telemetry cannot be deleted" in refused
    assert not Operation.objects.filter(kind="delete_queue").exists()


def test_main_has_no_button_to_delete_it(browser, installation) -> None:
    main = new_queue(installation.queue.tenant, "Main", topic="tb_rule_engine")
    assert "cannot be deleted" in show(browser, "queue", main)
    assert "Main of the system takes what finds no other queue" in show(browser, "delete_queue", main)


def test_a_queue_is_resized_after_its_plan(browser, installation) -> None:
    queue, address = installation.queue, reverse("resize_queue", args=[installation.queue.pk])
    assert f'href="{address}"' in show(browser, "queue", queue)
    shown = show(browser, "resize_queue", queue)
    assert 'value="3"' in shown
    assert "It has 3 partitions already." in shown
    shown = browser.post(address, {"partitions": "5"}).content.decode()
    for text in ("telemetry.3, telemetry.4, telemetry.5, telemetry.6, telemetry.7", "telemetry.0, telemetry.1"):
        assert text in shown
    assert not Operation.objects.filter(kind="resize_queue").exists()
    refused = browser.post(address, {"partitions": "0", "confirm": "yes"}).content.decode()
    assert 'value="0"' in refused
    assert "greater than or equal to 1" in refused
    fill(queue, installation.tenant, 3)
    answer = confirm(browser, address, {"partitions": "5"})
    operation = Operation.objects.get(kind="resize_queue")
    assert answer.redirect_chain == [(reverse("operation", args=[operation.pk]), 302)]
    run_until_told(operation, "3 messages are still to be consumed in the former partitions")
    told = "its messages go to partitions 3 to 7, which are consumed when 0 to 2 are done"
    assert told in show(browser, "queue", queue)
    assert "go to its new partitions already" in show(browser, "operation", operation)


@pytest.mark.parametrize(
    ("turn", "planned", "typed"),
    [
        ("resize_queue", {"partitions": "24"}, {"partitions": "240"}),
        ("drain_queue", {}, {"to": "Other"}),
        ("delete_queue", {}, {"move_to": "Other"}),
        ("delete_queue", {}, {"discard_letters": "on"}),
    ],
)
def test_what_is_typed_after_the_plan_is_planned_first(browser, installation, turn, planned, typed) -> None:
    other = new_queue(installation.queue.tenant, "Other")
    address = reverse(turn, args=[installation.queue.pk])
    plan = browser.post(address, planned).content.decode()
    assert first_button(plan, 'name="confirm"') == "Show the plan again"
    typed = {name: str(other.pk) if value == "Other" else value for name, value in typed.items()}
    anew = browser.post(address, {**fields_of(plan, 'name="confirm"'), **typed, "confirm": "yes"}).content.decode()
    assert "This is not what the plan before was for" in anew
    assert not Operation.objects.filter(kind=turn).exists()
    sent = fields_of(anew, 'name="confirm"')
    assert typed.items() <= sent.items()
    assert browser.post(address, {**sent, "confirm": "yes"}).status_code == 302
    assert Operation.objects.get(kind=turn)


@pytest.mark.parametrize("turn", ["resize_queue", "drain_queue", "delete_queue"])
def test_a_turn_whose_plan_nobody_saw_is_planned(browser, installation, turn) -> None:
    address = reverse(turn, args=[installation.queue.pk])
    browser.post(address, {"partitions": "24", "confirm": "yes"})
    assert not Operation.objects.filter(kind=turn).exists()
